"""Takes in the result of a job's own task, or its failure."""

from typing import Any

from pydantic import ValidationError

from jobs.actions.kind_actions import JobError, actions_of
from jobs.actions.payloads import change_payload
from jobs.actions.transition import move
from jobs.contracts.problems import first
from jobs.models import Job
from jobs.states import JobState


def done(job: Job, told: dict[str, Any]) -> None:
    """Take in what the engine function of a job returned, inside the caller's transaction."""
    if job.state == JobState.STARTING:
        move(job, JobState.RUNNING, fence=job.fence)
    if (refusal := take(job, told)) is not None:
        move(job, JobState.FAILED, fence=job.fence, error=refusal)
        return
    change_payload(job, task_done=True)
    if job.facts.keeps_result:
        job.results_json = told
        job.save(update_fields=["results_json"])
    if not _leads_on(job):
        move(job, JobState.COMPLETED, fence=job.fence)


def _leads_on(job: Job) -> bool:
    """Say whether steps follow a root: it is final only when they all are, which `pipeline` sees to."""
    if job.parent_id is not None or job.revision is None or not job.facts.first_step:
        return False
    return job.revision.spec.after.has_steps()


def take(job: Job, told: dict[str, Any]) -> JobError | None:
    """Hand a job's result to the rows that wait for it; return why it is no result of its kind."""
    try:
        result = job.facts.result.model_validate(told)
    except ValidationError as error:
        refusal = {"code": "bad_result", "message": f"its result cannot be read: {first(error).message}"}
        failed(job, refusal)
        return refusal
    actions_of(job).on_done(job, result)
    return None


def failed(job: Job, error: JobError) -> None:
    """Tell the rows that wait for a job's result that there will be none."""
    actions_of(job).on_failed(job, error)


def stopped(job: Job) -> None:
    """Tell them the same of a job that somebody stopped."""
    failed(job, {"code": "stopped", "message": f"job {job.pk} was stopped by hand"})
