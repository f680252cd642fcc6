"""Reads estimates for meshes: a runner builds a model without values and compiles its training step."""

from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from jobs.answers.experiments.mesh_estimates import EstimateProgressOut, MeshEstimateOut
from jobs.errors import NotFound
from jobs.kinds.mesh_estimate.payload import MeshEstimatePayload, MeshEstimateResult
from jobs.kinds.mesh_estimate.rows import any_estimate, estimates_of, estimates_of_model
from jobs.models import DatasetVersion, Job, Project
from jobs.models.job import JobQuerySet
from jobs.queries.code import dry_builds
from jobs.queries.data.causes import cause_of
from jobs.queries.experiments import model_states
from jobs.queries.requested_jobs import NOT_REQUESTED, answering_job, key_of
from jobs.queries.runs import progress
from jobs.spec.checks.dry_build import BuiltModel, Output
from jobs.spec.data.encoding import encoded
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.largest import largest, with_values
from jobs.spec.plan.model_fields import KnownState
from jobs.spec.sections.after import AfterSpec
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.sections.resources import Resources
from jobs.states import FINAL, WAITING, JobState

LIBRARIES = ("keras", "jax", "jaxlib")
SEARCHED = (
    "The variables are those of the model without the search: searched values may give others, and a worker "
    "checks the layout of each trial."
)
WITH_DEFAULTS = "The variables are those of the model with the defaults of its code's hyperparameters."
ONE_DEVICE = MeshSpec(shape=(1,), axis_names=("data",), simulate=1)


class EstimateRequest(NamedTuple):
    """A model and a mesh, and the project in which the job runs."""

    project: Project
    payload: MeshEstimatePayload

    @property
    def title(self) -> str:
        """Return the job's title."""
        model = self.payload.spec.model.info.name
        if not self.payload.compiles:
            return f"Variables of {model}"
        mesh = self.payload.spec.mesh or ONE_DEVICE
        return f"Estimate of {model} on {'×'.join(map(str, mesh.shape))} devices"

    @property
    def jobs(self) -> JobQuerySet:
        """Return the project's estimates of the same, newest first."""
        same = Job.objects.filter(estimates_of(self.payload.key), project=self.project)
        return same.order_by("-pk")


def request_of(
    project: Project,
    spec: ExperimentSpec,
    row: DatasetVersion,
    profile: Profile,
    *,
    compiles: bool,
    device_bytes: int | None,
) -> EstimateRequest:
    """Return the estimate of a valid spec on one version of its data; see `read_request`."""
    single = _without_search(spec, profile)
    model_key = model_states.model_key(single, row, profile)
    layout = {"shape", "axis_names", "batch_axis", "layout"}
    mesh = (single.mesh or ONE_DEVICE).model_dump(mode="json", include=layout)
    of_step = [mesh, single.fit.batch_size, device_bytes] if compiles else []
    payload = MeshEstimatePayload(
        dataset_version=row.pk,
        spec=single,
        output=_output_of_code(project, spec, row, profile),
        compiles=compiles,
        device_bytes=device_bytes if compiles else None,
        model_key=model_key,
        key=key_of([model_key, compiles, of_step, _library_versions()]),
    )
    return EstimateRequest(project, payload)


def _without_search(spec: ExperimentSpec, profile: Profile) -> ExperimentSpec:
    """Return a spec without a search, for simulated devices: that of its largest model, if it is known."""
    if spec.search is not None and model_states.has_formulas(spec, profile):
        values, _ = largest(spec, encoded(spec, profile))
        spec = with_values(spec, values)
    mesh = spec.mesh or ONE_DEVICE
    simulated = {"devices": "cpu", "simulate": mesh.size(), "preallocate": False, "memory_fraction": None}
    return spec.model_copy(
        update={
            "model": model_states.model_without_search(spec),
            "search": None,
            "mesh": mesh.model_copy(update=simulated),
            "after": AfterSpec(),
            "resources": Resources(),
        }
    )


def _output_of_code(
    project: Project, spec: ExperimentSpec, row: DatasetVersion, profile: Profile
) -> Output | None:
    """Return the meaning of the outputs of own code, if a dry build has found it."""
    if not isinstance(spec.model, CodeModel):
        return None
    built = dry_builds.build_result(dry_builds.dry_build_request(project, spec, row, profile))
    return built.output if built is not None else None


def _library_versions() -> list[str]:
    """Return the versions of the libraries; a server without them has those of its workers' release."""
    versions = []
    for name in LIBRARIES:
        try:
            versions.append(version(name))
        except PackageNotFoundError:
            versions.append("")
    return versions


def known_state(
    project: Project,
    spec: ExperimentSpec,
    version: DatasetVersion | None,
    built: BuiltModel | None,
) -> KnownState | None:
    """Return the variables of a spec's model as a worker has built it, or None if none has.

    Args:
        project: the experiment's project.
        spec: the experiment.
        version: its data.
        built: the model that its own code builds with the defaults of all hyperparameters, if it is known.
    """
    profile = version.profile if version is not None else None
    if version is None or profile is None or model_states.has_formulas(spec, profile):
        return None
    searched = SEARCHED if spec.search is not None else ""
    rows = Job.objects.filter(
        estimates_of_model(model_states.model_key(spec, version, profile)), project=project
    )
    job = rows.filter(state=JobState.COMPLETED).order_by("-pk").first()
    if job is not None:
        return KnownState(MeshEstimateResult.model_validate(job.results_json).state, searched)
    if built is None or built.state is None or not model_states.has_defaults(spec, built.space):
        return None
    # A dry build has the precision of Keras. Mixed policies keep their weights in the same type.
    if not spec.precision.policy.startswith(("float32", "mixed_")):
        return None
    return KnownState(built.state, searched or (WITH_DEFAULTS if built.space else ""))


def estimate_out(request: EstimateRequest) -> MeshEstimateOut:
    """Return an estimate's representation: a completed one, else an open one, else the last."""
    job = answering_job(request)
    return no_estimate() if job is None else estimate_of_job(job)


def no_estimate() -> MeshEstimateOut:
    """Return the representation of an estimate that was not requested."""
    return MeshEstimateOut(
        state=NOT_REQUESTED, job=None, compiles=False, progress=None, variables=None, step=None, largest=None,
        notes=(), versions={}, error=None, why_waiting="",
    )  # fmt: skip


def find_estimate(user_jobs: JobQuerySet, job_id: int) -> Job:
    """Return the job of an estimate among those that a user may see.

    Raises:
        NotFound: there is none with this number.
    """
    job = user_jobs.filter(any_estimate(), pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no estimate {job_id}.")
    return job


def device_bytes_of(job: Job) -> int | None:
    """Return the memory of one device for which an estimate was requested."""
    return job.payload_as(MeshEstimatePayload).device_bytes


def estimate_of_job(job: Job) -> MeshEstimateOut:
    """Return the representation of a job's estimate."""
    payload = job.payload_as(MeshEstimatePayload)
    result = None
    if job.state == JobState.COMPLETED:
        result = MeshEstimateResult.model_validate(job.results_json)
    return MeshEstimateOut(
        state=job.state,
        job=job.pk,
        compiles=payload.compiles,
        progress=_progress_of(job) if job.state not in FINAL else None,
        variables=result.state if result is not None else None,
        step=result.step if result is not None else None,
        largest=result.largest if result is not None else None,
        notes=result.notes if result is not None else (),
        versions=result.versions if result is not None else {},
        error=cause_of(job.error),
        why_waiting=job.why_waiting if job.state in WAITING else "",
    )


def _progress_of(job: Job) -> EstimateProgressOut:
    now = progress.progress_of_job(job)
    left = None if now.eta_seconds is None else round(now.eta_seconds, 1)
    return EstimateProgressOut(done=now.done, total=now.total, eta_seconds=left, phase=now.phase)
