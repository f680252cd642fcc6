"""A search's answer, and the searches that follow from it."""

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import follow_up
from jobs.answers.runs.jobs import JobOut
from jobs.answers.search.search_results import AnswerOut
from jobs.queries.runs import jobs as queries
from jobs.queries.search import answer
from webapp import analysis
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.shapes import Id, In

router = Router()


class RepeatIn(In):
    """How often the best two trials are trained again."""

    executions: int | None = Field(
        None,
        ge=2,
        le=follow_up.MOST_EXECUTIONS,
        description="Trainings of each, with new seeds; `repeats` of the answer if absent.",
    )


@router.get("/jobs/{int:job_id}/answer", response=AnswerOut)
def get_answer(request: HttpRequest, job_id: Id) -> AnswerOut:
    """Return the best trial, how sure its lead is, what mattered, and what can follow."""
    job = access.get_job(actor(request), job_id)
    search_answer = answer.answer_of_search(job)
    return search_answer.model_copy(update={"importance": analysis.importance_of(job)})


@router.post("/jobs/{int:job_id}/repeat", response={202: JobOut})
@idempotent
def repeat_best(request: HttpRequest, job_id: Id, body: RepeatIn | None = None) -> Status[JobOut]:
    """Queue a search that trains the best two trials again with new seeds. Returns the new job."""
    who = actor(request)
    job = access.get_job(who, job_id, Action.WRITE)
    executions = body.executions if body is not None else None
    return Status(202, queries.job_out(follow_up.repeat_best(job, by=who, executions=executions)))


@router.post("/jobs/{int:job_id}/narrow", response={202: JobOut})
@idempotent
def narrow_search(request: HttpRequest, job_id: Id) -> Status[JobOut]:
    """Queue the same search in a smaller space around its best trial. Returns the new job."""
    who = actor(request)
    job = access.get_job(who, job_id, Action.WRITE)
    return Status(202, queries.job_out(follow_up.queue_narrower_search(job, by=who)))
