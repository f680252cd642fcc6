"""Steering a search while it runs: its budget and space, and single trials that train on."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions import search_changes, trials
from jobs.models import Job
from jobs.queries import jobs as shown
from webapp.api import etags
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.shapes import Id, In, Json, Number

router = Router()


class SearchChange(In):
    """What shall change of a search; what is left out stays. `space` names what becomes narrower."""

    max_trials: int | None = Field(None, ge=1, le=100_000)
    parallel_trials: int | None = Field(None, ge=1, le=10_000, description="null: all free slots")
    max_consecutive_failures: int | None = Field(None, ge=1, le=100_000)
    space: list[dict[str, Any]] | None = Field(None, max_length=200)


class ReviseIn(In):
    """A change of a running search. `revision` is the one that the caller saw."""

    search: SearchChange
    comment: str = Field("", max_length=1000)
    revision: Number | None = Field(None, description="the number seen: 409 if it is another by now")


class ContinueIn(In):
    """Up to which epoch a trial goes on: needed for a completed one."""

    epochs: int | None = Field(None, ge=1, le=2**31 - 1)


@router.post("/jobs/{int:job_id}/revise", response={202: Json})
@idempotent
def revise_job(request: HttpRequest, job_id: Id, body: ReviseIn, response: HttpResponse) -> Status[Json]:
    """Change a running or paused search; it goes on under a new revision of its experiment."""
    who = actor(request)
    job = access.get_job(who, job_id, Action.WRITE)
    etags.check(request, _revision(job))
    seen = _revision(job) if "If-Match" in request.headers else body.revision
    sent = body.search.model_dump(exclude_unset=True)
    made = search_changes.revise(job, sent, by=who, seen=seen, comment=body.comment)
    etags.give(response, made.number)
    return Status(202, shown.detail(job))


def _revision(job: Job) -> int:
    return job.revision.number if job.revision is not None else 0


@router.post("/jobs/{int:job_id}/trials/{int:number}/continue", response={202: Json})
@idempotent
def continue_trial(
    request: HttpRequest, job_id: Id, number: Number, body: ContinueIn | None = None
) -> Status[Json]:
    """Let a trial train on from its newest checkpoints: a completed one up to `epochs`."""
    who = actor(request)
    row = access.get_trial(who, job_id, number, Action.WRITE)
    made = trials.go_on(row, body.epochs if body is not None else None, by=who)
    return Status(202, shown.trial(made, best=None))
