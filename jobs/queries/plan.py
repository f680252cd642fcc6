"""Judges a spec as sent: what does not hold, and the plan of what would run. Creates nothing."""

from typing import Any, NamedTuple

from django.db.models import Max, Sum
from pydantic import ValidationError

from jobs.contracts import checks
from jobs.contracts import plan as planning
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.plan import Plan, Situation
from jobs.contracts.problems import Problem, problems
from jobs.errors import BadSpec
from jobs.kinds import planned
from jobs.models import Attempt, DatasetVersion, Experiment, Project, Worker
from jobs.queries import datasets, duration_history, warm_start
from jobs.queries.outcomes import dataset_in

PREFIX = "/spec"


class Verdict(NamedTuple):
    """What is wrong with a spec, and its plan where it can be read at all."""

    spec: ExperimentSpec | None
    problems: list[Problem]
    plan: Plan | None = None

    @property
    def valid(self) -> bool:
        """Say whether it may be submitted."""
        return not self.problems


def judge(
    project: Project, body: Any, *, with_plan: bool = True, experiment: Experiment | None = None
) -> Verdict:
    """Check `body` as an experiment spec for `project`; pointers start with `/spec`.

    `experiment` is the one that the spec revises, if any: its own trainings tell most of how long it takes.
    """
    try:
        spec = ExperimentSpec.model_validate(body)
    except ValidationError as error:
        return Verdict(None, problems(error, body, PREFIX))
    version, found = _data(project, spec)
    found += warm_start.problems(project, spec.search)
    profile = version.profile if version is not None else None
    if profile is not None:
        found += checks.problems(spec, profile)
    now = situation(project, spec, experiment) if with_plan else None
    plan = planning.make_plan(spec, profile, now, planned(spec)) if now is not None else None
    return Verdict(spec, [Problem(PREFIX + p.pointer, p.message) for p in found], plan)


def require_valid(project: Project, body: Any) -> ExperimentSpec:
    """Return the spec that `body` holds.

    Raises:
        BadSpec: it does not hold; names every place.
    """
    verdict = judge(project, body, with_plan=False)
    if verdict.spec is None or verdict.problems:
        first = verdict.problems[0]
        more = f" (and {len(verdict.problems) - 1} more)" if len(verdict.problems) > 1 else ""
        raise BadSpec(f"{first.pointer}: {first.message}{more}", verdict.problems)
    return verdict.spec


def _data(project: Project, spec: ExperimentSpec) -> tuple[DatasetVersion | None, list[Problem]]:
    slug, number = spec.data.dataset, spec.data.dataset_version
    if dataset_in(project, slug) is None:
        return None, [Problem("/data/dataset", f"there is no data set {slug!r} in {project.slug}")]
    version = datasets.with_profile(project, slug, number)
    if version is None and number is not None:
        return None, [Problem("/data/dataset_version", f"{slug} has no version {number}")]
    if version is not None and version.state == DatasetVersion.State.FAILED:
        return None, [Problem("/data/dataset_version", f"{version} could not be read; see its page")]
    return version, []


def situation(project: Project, spec: ExperimentSpec, experiment: Experiment | None = None) -> Situation:
    """Return what the plan must know of workers and of earlier runs."""
    workers = Worker.objects.live(spec.resources.pool)
    slots = workers.aggregate(total=Sum("slots"), largest=Max("slots"))
    held = Attempt.objects.open().filter(worker__in=workers)
    taken = held.aggregate(taken=Sum("slots"))["taken"] or 0
    total = slots["total"] or 0
    history = duration_history.history(project, spec, experiment)
    return Situation(max(total - taken, 0), total, slots["largest"] or 0, history)
