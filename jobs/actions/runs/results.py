"""Applies a task's result or failure to its job and to the rows that wait for it."""

from typing import Any

from pydantic import ValidationError

from jobs.actions.runs.kind_actions import JobError, ResultRefused, actions_of
from jobs.actions.runs.payloads import change_payload
from jobs.actions.transition import move
from jobs.models import Job
from jobs.spec.problems import first
from jobs.states import JobState


def complete_job(job: Job, result: dict[str, Any]) -> None:
    """Apply the result from a job's engine function, inside the caller's transaction."""
    if job.state == JobState.STARTING:
        move(job, JobState.RUNNING, fence=job.fence)
    if (refusal := apply_result(job, result)) is not None:
        move(job, JobState.FAILED, fence=job.fence, error=refusal)
        return
    change_payload(job, task_done=True)
    if job.facts.keeps_result:
        job.results_json = result
        job.save(update_fields=["results_json"])
    if not _has_later_steps(job):
        move(job, JobState.COMPLETED, fence=job.fence)


def _has_later_steps(job: Job) -> bool:
    """Return whether steps follow a root. Then `pipeline` completes it after the last one."""
    if job.parent_id is not None or job.revision is None or not job.facts.has_steps:
        return False
    return job.revision.spec.after.has_steps()


def apply_result(job: Job, result: dict[str, Any]) -> JobError | None:
    """Store a job's result in the rows that wait for it. Return an error if the result is invalid."""
    try:
        parsed = job.facts.result.model_validate(result)
    except ValidationError as error:
        refusal = {"code": "bad_result", "message": f"its result is invalid: {first(error).message}"}
        report_failure(job, refusal)
        return refusal
    try:
        actions_of(job).on_done(job, parsed)
    except ResultRefused as refused:
        report_failure(job, refused.error)
        return refused.error
    return None


def report_failure(job: Job, error: JobError) -> None:
    """Mark the rows that wait for a job's result as failed."""
    actions_of(job).on_failed(job, error)


def report_stop(job: Job) -> None:
    """Mark the rows that wait for a stopped job's result as failed."""
    # Its time limit leaves an error; a user does not.
    by_user = {"code": "stopped", "message": f"job {job.pk} was stopped by a user"}
    report_failure(job, job.error or by_user)
