"""The result of a job's own task, and who waits for it: a data set, a version, a promotion."""

from collections.abc import Callable
from typing import Any

from jobs.actions import datasets, promotions, registration
from jobs.actions.transition import move
from jobs.models import Job
from jobs.queries.steps import has_after
from jobs.states import JobKind, JobState


def done(job: Job, result: dict[str, Any]) -> None:
    """Take in the result of a job's own task, inside the caller's transaction."""
    if job.state == JobState.STARTING:
        move(job, JobState.RUNNING, fence=job.fence)
    take(job, result)
    job.results = result if job.kind != JobKind.PROFILE else {}  # the version has it
    job.payload = job.payload | {"task_done": True}
    job.save(update_fields=["results", "payload"])
    if job.parent_id is None and job.kind == JobKind.TRAIN and job.revision and has_after(job.revision.spec):
        return  # a root is final only when all that follows it is: `advance` goes on
    move(job, JobState.COMPLETED, fence=job.fence)


def take(job: Job, result: dict[str, Any]) -> None:
    """Hand a job's result to the rows that wait for it."""
    if hook := _DONE.get(JobKind(job.kind)):
        hook(job, result)


def failed(job: Job, error: dict[str, Any]) -> None:
    """Tell whoever waits for a job's result that there will be none."""
    if hook := _FAILED.get(JobKind(job.kind)):
        hook(job, error)


def stopped(job: Job) -> None:
    """Tell them the same of a job that somebody stopped."""
    failed(job, {"code": "stopped", "message": f"job {job.pk} was stopped by hand"})


def _profiled(job: Job, result: dict[str, Any]) -> None:
    table = job.artifacts.filter(role="dataset").latest("pk").artifact
    datasets.profiled(job.payload["dataset_version"], result, table)


def _profile_failed(job: Job, error: dict[str, Any]) -> None:
    datasets.profile_failed(job.payload["dataset_version"], error)


def _registered(job: Job, result: dict[str, Any]) -> None:
    registration.validated(job.payload["version"], result)


def _register_failed(job: Job, error: dict[str, Any]) -> None:
    registration.invalid(job.payload["version"], error)


_DONE: dict[JobKind, Callable[[Job, dict[str, Any]], None]] = {
    JobKind.PROFILE: _profiled,
    JobKind.REGISTER: _registered,
    JobKind.GATE: promotions.gated,
}
_FAILED: dict[JobKind, Callable[[Job, dict[str, Any]], None]] = {
    JobKind.PROFILE: _profile_failed,
    JobKind.REGISTER: _register_failed,
    JobKind.GATE: promotions.gate_failed,
}
