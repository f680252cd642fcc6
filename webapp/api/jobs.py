"""Jobs, their trials, metrics, events and logs."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions import control, submit, trials
from jobs.actions.kind_submission import submit_kind
from jobs.contracts.problems import Problem
from jobs.contracts.search_space import Value
from jobs.errors import BadInput
from jobs.kinds import public_names
from jobs.models import Checkpoint, Job, Trial
from jobs.queries import events as event_log
from jobs.queries import jobs as shown
from jobs.queries import metrics as metric_log
from jobs.queries import outcomes, running_executions
from jobs.states import JobState
from webapp.api import etags
from webapp.api.auth import actor, caller
from webapp.api.idempotency import idempotent
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import Id, In, Json, Number, OneOf
from webapp.api.trials import Numbers, numbers_of
from webapp.live import sse

router = Router()

Order = Literal["pause", "resume", "stop", "kill", "retry", "clone"]
_ORDERS = {
    "pause": control.pause,
    "resume": control.resume,
    "stop": control.stop,
    "kill": control.kill,
    "retry": control.retry,
    "clone": submit.clone,
}


KIND_NAMES = tuple(
    dict.fromkeys(
        (
            *("search", "train", "ensemble", "quantize", "evaluate", "register", "gate", "export"),
            *("batch_prediction", "custom", "profile"),
            *public_names(),
        )
    )
)
"""The kinds that the API promises, whether there are jobs of them yet or not, and those that came since."""


class JobFilters(Schema):
    """`?project=&state=&kind=&parent=&experiment=` of the list."""

    project: str | None = Field(None, max_length=63)
    state: Annotated[str, OneOf(JobState)] | None = None
    kind: Annotated[str, OneOf(KIND_NAMES)] | None = None
    parent: Id | None = None
    experiment: Id | None = None


class JobIn(In):
    """A job submitted by itself: its kind, and the payload that the kind takes."""

    kind: str = Field(max_length=20)
    project: str
    payload: Json


class JobChange(In):
    """What may be changed of a job that has not ended."""

    priority: int | None = Field(None, ge=0, le=100)
    pool: str | None = Field(None, pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")


class TrialIn(In):
    """A configuration queued by hand."""

    values: dict[str, Value]


class MetricsFilter(Schema):
    """`?names=a,b&trial=&trials=1,2,3&newest=&execution=&max_points=&from=&to=`."""

    names: str = Field("", max_length=5000)
    trial: Number | None = None
    trials: Numbers = ""
    newest: int | None = Field(None, ge=1, le=10_000, description="only the trials that began last")
    execution: Number | None = None
    max_points: int = Field(1500, ge=2, le=100_000)
    start: float | None = Field(None, alias="from", allow_inf_nan=False)
    end: float | None = Field(None, alias="to", allow_inf_nan=False)


class EventsFilter(Schema):
    """`?after=<cursor>&limit=`."""

    after: Id = 0
    limit: int = Field(500, ge=1, le=5000)


class LogsFilter(Schema):
    """`?after=<cursor>&newest=&q=&level=&trial=&limit=`."""

    after: Id = 0
    newest: bool = False
    q: str = Field("", max_length=500)
    level: Literal["", "debug", "info", "warning", "error"] = ""
    trial: Number | None = None
    limit: int = Field(200, ge=1, le=5000)


@router.get("/jobs", response=Page[Json])
def list_jobs(request: HttpRequest, filters: Query[JobFilters], paging: Query[Paging]) -> Page[Any]:
    """List the jobs in sight, newest first."""
    rows = shown.for_lists(access.visible_jobs(actor(request)))
    if filters.project is not None:
        rows = rows.filter(project__slug=filters.project)
    if filters.kind is not None:
        rows = rows.called(filters.kind)
    for name in ("state", "parent", "experiment"):
        if (value := getattr(filters, name)) is not None:
            rows = rows.filter(**{name: value})
    page = cut(rows, paging, lambda row: row)
    return Page(items=shown.details(page.items), next=page.next)


@router.post("/jobs", response={202: Json})
@idempotent
def submit_job(request: HttpRequest, body: JobIn) -> Status[Json]:
    """Queue a job of a kind that is submitted by itself, without an experiment."""
    who = actor(request)
    project = access.get_project(who, body.project, Action.WRITE)
    return Status(202, shown.detail(submit_kind(project, body.kind, body.payload, by=who)))


@router.get("/jobs/{int:job_id}", response=Json)
def get_job(request: HttpRequest, job_id: Id, response: HttpResponse) -> Json:
    """Return a job with its steps, progress and results; its ETag is its revision, for `revise`."""
    job = access.get_job(actor(request), job_id)
    if job.revision is not None:
        etags.give(response, job.revision.number)
    return shown.detail(job)


@router.patch("/jobs/{int:job_id}", response=Json)
def change_job(request: HttpRequest, job_id: Id, body: JobChange) -> Json:
    """Give a job another priority or pool."""
    who = actor(request)
    job = access.get_job(who, job_id, Action.WRITE)
    return shown.detail(control.change(job, priority=body.priority, pool=body.pool, by=who))


@router.get("/jobs/{int:job_id}/artifacts", response=Page[Json])
def list_artifacts(request: HttpRequest, job_id: Id, paging: Query[Paging]) -> Page[Any]:
    """List what a job (and its children) made, in the order it was made."""
    job = access.get_job(actor(request), job_id)
    return cut(shown.artifacts([job, *job.children.all()]), paging, shown.artifact, default="id")


@router.get("/jobs/{int:job_id}/checkpoints", response=Page[Json])
def list_checkpoints(request: HttpRequest, job_id: Id, paging: Query[Paging]) -> Page[Any]:
    """List the checkpoints that still stand, newest first."""
    job = access.get_job(actor(request), job_id)
    return cut(shown.checkpoints(job), paging, _checkpoint)


def _checkpoint(row: Checkpoint) -> Json:
    return {
        "job": row.job_id,
        "trial": row.trial.number if row.trial else None,
        "execution": row.execution,
        "attempt": row.attempt,
        "step": row.step,
        "epoch": row.epoch,
        "bytes": row.bytes,
        "manifest": row.manifest,
        "created": row.created,
    }


@router.get("/jobs/{int:job_id}/attempts", response=Page[Json])
def list_attempts(request: HttpRequest, job_id: Id, paging: Query[Paging]) -> Page[Any]:
    """List the attempts with their workers, outcomes and reproducibility records."""
    job = access.get_job(actor(request), job_id)
    return cut(shown.attempts(job), paging, shown.attempt)


@router.get("/jobs/{int:job_id}/trials", response=Page[Json])
def list_trials(request: HttpRequest, job_id: Id, paging: Query[Paging]) -> Page[Any]:
    """List a search's trials."""
    job = access.get_job(actor(request), job_id)
    best, standing, running = (
        shown.best_number(job),
        outcomes.standing(job),
        running_executions.of_search(job),
    )

    def show(row: Trial) -> Json:
        return shown.trial(row, best=best, standing=standing, running=running)

    return cut(shown.trials(job), paging, show, sorts={"number": "number", "id": "pk"}, default="number")


@router.post("/jobs/{int:job_id}/trials", response={201: Json})
@idempotent
def queue_trial(request: HttpRequest, job_id: Id, body: TrialIn) -> tuple[int, Json]:
    """Queue one configuration by hand."""
    who = actor(request)
    row = trials.queue_by_hand(access.get_job(who, job_id, Action.WRITE), body.values, by=who)
    return 201, shown.trial(row, best=None)


@router.get("/jobs/{int:job_id}/trials/{int:number}", response=Json)
def get_trial(request: HttpRequest, job_id: Id, number: Number) -> Json:
    """Return one trial."""
    row = access.get_trial(actor(request), job_id, number)
    return shown.trial(row, best=shown.best_number(row.job))


@router.post("/jobs/{int:job_id}/trials/{int:number}/{order}", response={202: Json})
@idempotent
def order_trial(
    request: HttpRequest, job_id: Id, number: Number, order: Literal["retry", "again", "train"]
) -> tuple[int, Json]:
    """Run a failed or stopped trial again, queue its values once more, or train them for real.

    Under `retry` finished executions stay, and broken ones go on from their newest checkpoints. `again`
    answers the new trial, `train` the new job.
    """
    who = actor(request)
    row = access.get_trial(who, job_id, number, Action.WRITE)
    if order == "train":
        return 202, shown.detail(trials.train(row, by=who))
    made = (
        trials.queue_by_hand(row.job, row.values, by=who) if order == "again" else trials.retry(row, by=who)
    )
    return 202, shown.trial(made, best=None)


@router.get("/jobs/{int:job_id}/metrics", response=Json)
def get_metrics(request: HttpRequest, job_id: Id, filters: Query[MetricsFilter]) -> Json:
    """Return metric series, bucketed to `max_points`."""
    job = access.get_job(actor(request), job_id)
    if filters.start is not None and filters.end is not None and filters.start > filters.end:
        raise BadInput(f"from={filters.start} is above to={filters.end}", [Problem("/from", "above to")])
    found = metric_log.read(
        job,
        names=[name for name in filters.names.split(",") if name],
        trial=filters.trial,
        trials=numbers_of(filters.trials),
        newest=filters.newest,
        execution=filters.execution,
        max_points=filters.max_points,
        start=filters.start,
        end=filters.end,
    )
    return {"series": [_with_nonfinite(series) for series in found]}


def _with_nonfinite(series: metric_log.Series) -> Json:
    body = series._asdict()
    if any(point[1] is None for point in series.points):
        body["nonfinite"] = True
    return body


@router.get("/jobs/{int:job_id}/events", response=Json)
def get_events(
    request: HttpRequest, job_id: Id, filters: Query[EventsFilter]
) -> Json | StreamingHttpResponse:
    """Return events after a cursor; as a stream when asked for `text/event-stream`."""
    who = actor(request)
    job = access.get_job(who, job_id)
    if "text/event-stream" in request.headers.get("Accept", ""):
        token = caller(request).token
        after = _last_event_id(request, filters.after)
        return sse.stream(who, job, after=after, token_id=token.pk if token is not None else None)
    found = event_log.read(job.root_id_or_self, after=filters.after, limit=filters.limit, job_id=_only(job))
    return {"items": found.items, "cursor": found.cursor}


def _only(job: Job) -> int | None:
    return None if job.parent_id is None else job.pk


def _last_event_id(request: HttpRequest, default: int) -> int:
    text = request.headers.get("Last-Event-ID", "")
    return int(text) if text.isdecimal() and len(text) < 19 else default


@router.get("/jobs/{int:job_id}/logs", response=Json)
def get_logs(request: HttpRequest, job_id: Id, filters: Query[LogsFilter]) -> Json:
    """Return log lines after a cursor or, with `newest`, the last ones; searched and filtered."""
    job = access.get_job(actor(request), job_id)
    asked: Json = {"text": filters.q, "level": filters.level, "trial": filters.trial, "limit": filters.limit}
    found = (
        event_log.newest_logs(job, **asked)
        if filters.newest
        else event_log.logs(job, after=filters.after, **asked)
    )
    return {"items": found.items, "cursor": found.cursor}


# Last: its address would match those above.
@router.post("/jobs/{int:job_id}/{order}", response={202: Json})
@idempotent
def order_job(request: HttpRequest, job_id: Id, order: Order) -> tuple[int, Json]:
    """Pause, resume, stop, kill, retry or clone a job."""
    who = actor(request)
    job = access.get_job(who, job_id, Action.WRITE)
    return 202, shown.detail(_ORDERS[order](job, by=who))
