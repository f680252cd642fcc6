"""Validates an experiment spec and plans the jobs that it would run. Writes nothing."""

from contextlib import suppress
from typing import Any, NamedTuple

from django.db.models import Sum
from pydantic import ValidationError

from jobs.errors import BadSpec
from jobs.kinds import planned_steps
from jobs.models import Attempt, DatasetVersion, Experiment, Job, Project, User, Worker
from jobs.queries.code import code_checks, dry_builds, script_checks
from jobs.queries.data import datasets
from jobs.queries.experiments import base_versions, duration_history, mesh_estimates, warm_start
from jobs.queries.runs.devices import fitting_workers, why_none_fits, workers_with_labels
from jobs.queries.search.outcomes import find_dataset
from jobs.spec.checks import (
    attention as attention_checks,
)
from jobs.spec.checks import (
    data as data_checks,
)
from jobs.spec.checks import (
    devices as device_checks,
)
from jobs.spec.checks import (
    dry_build,
)
from jobs.spec.checks import (
    fine_tuning as fine_tuning_checks,
)
from jobs.spec.checks import (
    gpus as gpu_checks,
)
from jobs.spec.checks import (
    normalization as normalization_checks,
)
from jobs.spec.checks import (
    settings as spec_checks,
)
from jobs.spec.checks import (
    sizes as spec_sizes,
)
from jobs.spec.checks.dry_build import BuiltModel
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.labels import has_labels
from jobs.spec.plan import planning
from jobs.spec.plan.base_version import BaseVersion
from jobs.spec.plan.model_fields import KnownState, layout_problems
from jobs.spec.plan.plan import Plan, Situation
from jobs.spec.problems import MAX_PROBLEMS, Problem, problems
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.sections.gpu import gpu_devices
from jobs.spec.sections.resources import WorkerSize, unserved
from jobs.states import FINAL

PREFIX = "/spec"


class Validation(NamedTuple):
    """A spec's problems. `spec` and `plan` are None if it cannot be parsed."""

    spec: ExperimentSpec | None
    problems: list[Problem]
    plan: Plan | None = None

    @property
    def valid(self) -> bool:
        """Return whether the spec may be submitted."""
        return not self.problems


def validate_spec(
    project: Project,
    body: Any,
    *,
    by: User | None = None,
    with_plan: bool = True,
    experiment: Experiment | None = None,
) -> Validation:
    """Validate a JSON body as an experiment spec.

    Args:
        project: the project that it would run in.
        body: the spec as parsed JSON.
        by: the acting user, if the spec starts from another project's version.
        with_plan: whether to make the plan.
        experiment: the experiment that the spec revises, if any. Its trainings give the best time estimate.

    Returns:
        The result. Its problems' pointers start with `/spec`. A version that the spec starts from is pinned
        in it.
    """
    if (too_long := spec_sizes.text_problem(body)) is not None:
        return Validation(None, _with_prefix([too_long]))
    try:
        spec = ExperimentSpec.model_validate(body)
    except ValidationError as error:
        return Validation(None, problems(error, body, PREFIX))
    if too_large := list(spec_sizes.problems(spec)):
        return Validation(spec, _with_prefix(too_large))
    version, of_data = _find_data(project, spec)
    source, of_source = base_versions.find_base_version(project, spec, by)
    base = None
    if source is not None:
        spec, base = base_versions.pin_version(spec, source), base_versions.describe_base(source)
    spec, of_settings, built, known = _check_settings(project, spec, version, base)
    # A refused pattern is reported for the spec alone, and with the variables of its model.
    all_problems = list(dict.fromkeys([*of_data, *of_source, *of_settings]))
    now = plan_situation(project, spec, experiment) if with_plan else None
    profile = version.profile if version is not None else None
    plan = None
    if now is not None:
        of_code = script_checks.argument_warnings(project, spec)
        plan = planning.make_plan(
            spec, profile, now, planned_steps(spec), base, built, code_warnings=of_code, known=known
        )
    return Validation(spec, _with_prefix(all_problems), plan)


class _Checked(NamedTuple):
    """A spec with its code's whole space, if that is known; its problems; its code's model and variables."""

    spec: ExperimentSpec
    problems: list[Problem]
    built: BuiltModel | None = None
    known: KnownState | None = None


def _check_settings(
    project: Project, spec: ExperimentSpec, version: DatasetVersion | None, base: BaseVersion | None
) -> _Checked:
    """Check a spec's settings. If it has own code, its space is completed."""
    profile = version.profile if version is not None else None
    spec_problems, built = [*code_checks.code_problems(project, spec), *spec_checks.problems(spec)], None
    if isinstance(spec.model, CodeModel):
        spec_problems = spec_problems or list(data_checks.value_problems(spec))
        of_code = _check_code(project, spec, spec.model, version)
        spec_problems, built = [*spec_problems, *of_code.problems], of_code.built
        # Problems point to the rows that were sent.
        spec = spec if spec_problems else of_code.spec
    spec_problems += warm_start.warm_start_problems(project, spec.search)
    spec_problems += device_checks.problems(spec)
    spec_problems += gpu_checks.problems(spec)
    spec_problems += _tpu_problems(spec)
    if profile is not None:
        spec_problems += data_checks.problems(spec, profile)
        spec_problems += normalization_checks.problems(spec, profile, built)
    if base is not None:
        spec_problems += fine_tuning_checks.problems(spec, profile, base)
    spec_problems += attention_checks.problems(spec, built, base)
    known = mesh_estimates.known_state(project, spec, version, built)
    if known is not None:
        spec_problems += layout_problems(spec, known)
    return _Checked(spec, spec_problems, built, known)


def _tpu_problems(spec: ExperimentSpec) -> list[Problem]:
    """Return the problem with a mesh of TPUs if no worker reports one. Stored specs are not checked."""
    if spec.mesh is None or spec.mesh.kind != "tpu":
        return []
    pool = spec.resources.pool
    if any(device_checks.has_tpu(worker.device_names) for worker in Worker.objects.live(pool)):
        return []
    return [
        Problem(
            "/mesh/devices",
            f"no worker of pool {pool!r} reports a TPU; start one on a machine with TPUs with "
            "JAX_PLATFORMS=tpu, or use devices of another kind",
        )
    ]


def _check_code(
    project: Project, spec: ExperimentSpec, model: CodeModel, version: DatasetVersion | None
) -> _Checked:
    spec_problems = list(dry_builds.model_problems(project, model))
    profile = version.profile if version is not None else None
    if spec_problems or version is None or profile is None:
        return _Checked(spec, spec_problems)
    request = dry_builds.dry_build_request(project, spec, version, profile)
    built = dry_builds.build_result(request)
    if built is None:
        of_findings = dry_builds.settings_problems(project, spec, model)
        return _Checked(spec, [*dry_builds.failure_problems(request), *of_findings])
    spec_problems = list(dry_build.problems_of(spec, built))
    return _Checked(spec if spec_problems else dry_build.complete_spec(spec, built), spec_problems, built)


def _with_prefix(spec_problems: list[Problem]) -> list[Problem]:
    return [problem._replace(pointer=PREFIX + problem.pointer) for problem in spec_problems[:MAX_PROBLEMS]]


def require_valid_spec(project: Project, body: Any, *, by: User) -> ExperimentSpec:
    """Return the spec in a JSON body; a version that it starts from is pinned in it.

    Raises:
        BadSpec: the spec is invalid; names all problems.
    """
    validation = validate_spec(project, body, by=by, with_plan=False)
    if validation.spec is None or validation.problems:
        first = validation.problems[0]
        others = f" (and {len(validation.problems) - 1} more)" if len(validation.problems) > 1 else ""
        raise BadSpec(f"{first.pointer}: {first.message}{others}", validation.problems)
    return validation.spec


def _find_data(project: Project, spec: ExperimentSpec) -> tuple[DatasetVersion | None, list[Problem]]:
    if spec.data is None:
        return None, []
    slug, number = spec.data.dataset, spec.data.dataset_version
    if find_dataset(project, slug) is None:
        return None, [Problem("/data/dataset", f"there is no data set {slug!r} in {project.slug}")]
    version = datasets.find_version(project, slug, number)
    if version is None and number is not None:
        return None, [Problem("/data/dataset_version", f"{slug} has no version {number}")]
    if version is None and not datasets.is_being_read(project, slug):
        return None, [Problem("/data/dataset", f"{slug} has no version that could be read; see its page")]
    if version is not None and version.state == DatasetVersion.State.FAILED:
        return None, [Problem("/data/dataset_version", f"{version} could not be read; see its page")]
    return version, []


def plan_situation(project: Project, spec: ExperimentSpec, experiment: Experiment | None = None) -> Situation:
    """Return the slots and earlier durations that a plan depends on."""
    live = list(Worker.objects.live(spec.resources.pool))
    wanted = spec.resources.labels or {}
    labelled = [worker for worker in live if has_labels(worker.labels, wanted)]
    workers = [worker for worker in labelled if not worker.refusal]
    held = Attempt.objects.open().filter(worker__in=workers)
    busy = held.aggregate(taken=Sum("slots"))["taken"] or 0
    total = sum(worker.slots for worker in workers)
    return Situation(
        max(total - busy, 0),
        tuple(
            WorkerSize(
                worker.slots,
                worker.device_names,
                tuple(worker.info.get("no_gpu_in_sandbox", ())),
                gpu_devices(worker.devices),
            )
            for worker in workers
        ),
        duration_history.past_durations(project, spec, experiment),
        unlabelled=len(labelled) < len(live),
        refusals=tuple(f"{worker.name}: {worker.refusal}" for worker in labelled if worker.refusal),
    )


def resource_warnings(job: Job) -> list[Problem]:
    """Return problems if no running worker in a job's pool can take it, even with free slots."""
    if job.state in FINAL:
        return []
    live = list(Worker.objects.live(job.pool))
    able = workers_with_labels(job, live)
    largest = max((worker.slots for worker in able), default=0)
    problem = unserved(job.pool, job.slots, largest, job.labels, unlabelled=len(able) < len(live))
    if problem is not None:
        return [problem]
    # The scheduler reports an invalid spec.
    with suppress(ValueError):
        if not fitting_workers(job, live):
            waits = "The job will wait; start a worker that fits, or choose another pool."
            return [Problem("/pool", f"{why_none_fits(job, live)} {waits}")]
    return []
