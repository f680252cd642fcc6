"""Changes a running search's budget and space."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions.search import search_changes
from jobs.answers.runs.jobs import JobOut
from jobs.models import Job
from jobs.queries.runs import jobs as queries
from jobs.spec.base import DocumentedAs
from jobs.spec.json_types import JsonObject
from jobs.spec.space.narrowing import NarrowedHyperparameter
from webapp.api import etags
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.shapes import Id, In, Number

router = Router()


class SearchChange(In):
    """The search fields that can be changed while it runs. Fields that are left out stay as they are."""

    max_trials: int | None = Field(None, ge=1, le=100_000)
    max_minutes: float | None = Field(
        None, gt=0, le=100_000, description="Since the start of the search; null: no limit."
    )
    parallel_trials: int | None = Field(None, ge=1, le=10_000, description="null: all free slots.")
    max_consecutive_failures: int | None = Field(None, ge=1, le=100_000)
    space: list[Annotated[JsonObject, DocumentedAs(NarrowedHyperparameter)]] | None = Field(
        None, max_length=200, description="The hyperparameters whose range becomes narrower."
    )


class ReviseIn(In):
    """A change to a running search."""

    search: SearchChange
    comment: str = Field("", max_length=1000)
    revision: Number | None = Field(
        None, description="The revision that the caller has read; another one is a 409."
    )


@router.post("/jobs/{int:job_id}/revise", response={202: JobOut})
@idempotent
def revise_search(request: HttpRequest, job_id: Id, body: ReviseIn, response: HttpResponse) -> Status[JobOut]:
    """Change a running or paused search. It continues under a new revision in its experiment."""
    who = actor(request)
    job = access.get_job(who, job_id, Action.WRITE)
    etags.require_match(request, _revision(job))
    seen = _revision(job) if "If-Match" in request.headers else body.revision
    sent = body.search.model_dump(exclude_unset=True)
    revision = search_changes.revise_search(job, sent, by=who, seen=seen, comment=body.comment)
    etags.set_etag(response, revision.number)
    return Status(202, queries.job_out(job))


def _revision(job: Job) -> int:
    return job.revision.number if job.revision is not None else 0
