"""Operations on jobs: lists, control, artifacts, attempts, metrics, events and logs."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions.runs import control, submit
from jobs.actions.runs.kind_submission import submit_kind
from jobs.actions.storage import deletions
from jobs.answers.runs.events import EventsOut, LogsOut
from jobs.answers.runs.jobs import AttemptOut, ChangedJobOut, CheckpointOut, JobOut
from jobs.answers.runs.metrics import MetricsOut
from jobs.answers.runs.results import ArtifactOut
from jobs.answers.runs.shardings import ShardingsOut
from jobs.errors import BadInput, Forbidden, NotFound
from jobs.kinds import public_names
from jobs.kinds.inputs import submittable_kinds
from jobs.models import Job
from jobs.models.sessions import stored_key
from jobs.queries.experiments.plan import resource_warnings
from jobs.queries.runs import events as event_log
from jobs.queries.runs import jobs as queries
from jobs.queries.runs import metrics as metric_log
from jobs.queries.runs.shardings import shardings_of
from jobs.spec.json_types import JsonObject
from jobs.spec.labels import Labels
from jobs.spec.name_lists import read_names
from jobs.spec.problems import Problem
from jobs.spec.sections.resources import MOST_MINUTES, POOL
from jobs.states import JobState
from webapp.api import etags
from webapp.api.auth import actor, caller
from webapp.api.idempotency import idempotent
from webapp.api.media import fast_json
from webapp.api.paging import Page, Paging, paginate, paginate_bulk
from webapp.api.search.trials import NAMES, Names, Numbers, numbers_of
from webapp.api.shapes import Id, In, Number, OneOf
from webapp.downloads import describe_download
from webapp.live import sse
from webapp.live.event_stream import Reader
from webapp.live.origin import is_own

router = Router()

Command = Literal["pause", "resume", "finish", "stop", "kill", "retry", "clone"]
_COMMANDS: dict[Command, Callable[..., Job]] = {
    "pause": control.pause,
    "resume": control.resume,
    "finish": control.finish,
    "stop": control.stop,
    "kill": control.kill,
    "retry": control.retry,
    "clone": submit.clone,
}

KIND_NAMES = (*public_names(), "evaluate", "export", "batch_prediction", "custom")
"""The kinds that `?kind=` accepts. Some of them have no jobs yet."""


class JobFilter(Schema):
    """The list's filters."""

    project: str | None = Field(None, max_length=63)
    state: Annotated[str, OneOf(JobState)] | None = None
    kind: Annotated[str, OneOf(KIND_NAMES)] | None = None
    parent: Id | None = None
    experiment: Id | None = None


class JobIn(In):
    """A new job without an experiment."""

    kind: str = Field(max_length=20)
    project: str
    payload: JsonObject = Field(description="The input of the job; its fields depend on the kind.")


class JobChange(In):
    """The job fields that can be changed until the job has ended."""

    priority: int | None = Field(None, ge=0, le=100, description="Higher runs first.")
    pool: str | None = Field(None, pattern=POOL)
    labels: Labels | None = Field(
        None, description="Replaces the labels that a worker must have; {} asks for none."
    )
    max_minutes: float | None = Field(
        None, gt=0, le=MOST_MINUTES, description="The time limit of a training or script."
    )


class MetricsFilter(Schema):
    """Filters for metric series."""

    names: Names = Field("", description=NAMES)
    trial: Number | None = None
    trials: Numbers = Field("", description="Trial numbers, separated by commas.")
    newest: int | None = Field(
        None, ge=1, le=10_000, description="Only this many of the trials that started last."
    )
    execution: Number | None = None
    max_points: int = Field(
        1500, ge=2, le=100_000, description="Longer series are reduced to this many points."
    )
    start: float | None = Field(None, alias="from", allow_inf_nan=False, description="The smallest x.")
    end: float | None = Field(None, alias="to", allow_inf_nan=False, description="The largest x.")


class EventsFilter(Schema):
    """Where to begin in an event list."""

    after: Id = Field(0, description="The `cursor` of the last response.")
    limit: int = Field(500, ge=1, le=5000)


class LogsFilter(Schema):
    """Filters for log lines."""

    after: Id = Field(0, description="The `cursor` of the last response.")
    newest: bool = Field(False, description="Return the newest lines; `after` is ignored.")
    q: str = Field("", max_length=500, description="Only lines that contain this text.")
    level: Literal["", "debug", "info", "warning", "error"] = ""
    trial: Number | None = None
    limit: int = Field(200, ge=1, le=5000)


@router.get("/jobs", response=Page[JobOut])
def list_jobs(request: HttpRequest, filters: Query[JobFilter], paging: Query[Paging]) -> Page[JobOut]:
    """List the jobs in the caller's projects, newest first."""
    rows = queries.jobs_for_lists(access.visible_jobs(actor(request)))
    if filters.project is not None:
        rows = rows.filter(project__slug=filters.project)
    if filters.kind is not None:
        rows = rows.called(filters.kind)
    for name in ("state", "parent", "experiment"):
        if (value := getattr(filters, name)) is not None:
            rows = rows.filter(**{name: value})
    reader = actor(request)
    return paginate_bulk(Page[JobOut], rows, paging, lambda jobs: queries.jobs_out(jobs, reader))


def create_job(request: HttpRequest, body: JobIn) -> Status[JobOut]:
    """Queue a job that needs no experiment. Only some kinds allow this."""
    who = actor(request)
    project = access.get_project(who, body.project, Action.WRITE)
    return Status(202, queries.job_out(submit_kind(project, body.kind, body.payload, by=who), who))


if submittable_kinds():  # otherwise it could only refuse
    router.post("/jobs", response={202: JobOut})(idempotent(create_job))


@router.get("/jobs/{int:job_id}", response=JobOut)
def get_job(request: HttpRequest, job_id: Id, response: HttpResponse) -> JobOut:
    """Return a job with its steps, progress and results. Its ETag is its revision, for `revise`."""
    who = actor(request)
    job = access.get_job(who, job_id)
    if job.revision is not None:
        etags.set_etag(response, job.revision.number)
    return queries.job_out(job, who)


@router.patch("/jobs/{int:job_id}", response=ChangedJobOut)
def change_job(request: HttpRequest, job_id: Id, body: JobChange) -> ChangedJobOut:
    """Change a job's priority, pool, labels or time limit. `warnings` names a pool without a worker."""
    who = actor(request)
    job = access.get_job(who, job_id, Action.WRITE)
    changed = control.change(
        job,
        priority=body.priority,
        pool=body.pool,
        labels=body.labels,
        max_minutes=body.max_minutes,
        by=who,
    )
    warnings = [
        {"pointer": problem.pointer, "message": problem.message} for problem in resource_warnings(changed)
    ]
    return ChangedJobOut(**dict(queries.job_out(changed, who)), warnings=warnings)


@router.delete("/jobs/{int:job_id}", response={204: None})
def delete_job(request: HttpRequest, job_id: Id) -> Status[None]:
    """Delete a job with its steps, trials, metrics and files. Refused until the job has ended."""
    deletions.delete(access.get_job(actor(request), job_id), by=actor(request))
    return Status(204, None)


@router.get("/jobs/{int:job_id}/artifacts", response=Page[ArtifactOut])
def list_artifacts(request: HttpRequest, job_id: Id, paging: Query[Paging]) -> Page[ArtifactOut]:
    """List the artifacts from a job and its children, oldest first."""
    job = access.get_job(actor(request), job_id)
    rows = queries.newest_artifacts([job, *job.children.all()])
    return paginate(Page[ArtifactOut], rows, paging, queries.artifact_out, default="id")


@router.get("/jobs/{int:job_id}/checkpoints", response=Page[CheckpointOut])
def list_checkpoints(request: HttpRequest, job_id: Id, paging: Query[Paging]) -> Page[CheckpointOut]:
    """List the checkpoints that are kept, newest first."""
    job = access.get_job(actor(request), job_id)
    return paginate(Page[CheckpointOut], queries.kept_checkpoints(job), paging, queries.checkpoint_out)


@router.get("/jobs/{int:job_id}/attempts", response=Page[AttemptOut])
def list_attempts(request: HttpRequest, job_id: Id, paging: Query[Paging]) -> Page[AttemptOut]:
    """List the attempts with their workers, outcomes and reproducibility records."""
    job = access.get_job(actor(request), job_id)
    return paginate(Page[AttemptOut], queries.attempts_with_trials(job), paging, queries.attempt_out)


@router.get("/jobs/{int:job_id}/shardings", response=ShardingsOut)
def get_shardings(request: HttpRequest, job_id: Id) -> ShardingsOut:
    """Return how the weights of a training on a mesh are divided, beside the design, and its speed."""
    job = access.get_job(actor(request), job_id)
    if (shardings := shardings_of(job)) is None:
        raise NotFound(
            f"no training of job {job.pk} has reported its shardings: only trainings on a mesh do, once the "
            "model is built"
        )
    return shardings


@router.get("/jobs/{int:job_id}/metrics", response=MetricsOut)
def get_metrics(request: HttpRequest, job_id: Id, filters: Query[MetricsFilter]) -> HttpResponse:
    """Return metric series. Series longer than `max_points` are reduced."""
    job = access.get_job(actor(request), job_id)
    if filters.start is not None and filters.end is not None and filters.start > filters.end:
        raise BadInput(
            f"from={filters.start} is greater than to={filters.end}", [Problem("/from", "greater than to")]
        )
    series = metric_log.read_series(
        job,
        names=read_names(filters.names),
        trial=filters.trial,
        trials=numbers_of(filters.trials),
        newest=filters.newest,
        execution=filters.execution,
        max_points=filters.max_points,
        start=filters.start,
        end=filters.end,
    )
    return fast_json(MetricsOut(series=series))


@router.get(
    "/jobs/{int:job_id}/events", response=EventsOut, openapi_extra=describe_download("text/event-stream")
)
def get_events(
    request: HttpRequest, job_id: Id, filters: Query[EventsFilter]
) -> HttpResponse | StreamingHttpResponse:
    """Return the events after a cursor. `Accept: text/event-stream` returns an endless stream."""
    who = actor(request)
    job = access.get_job(who, job_id)
    if "text/event-stream" in request.headers.get("Accept", ""):
        # A browser that reconnects repeats the address, and sends the last cursor in this header.
        last = request.headers.get("Last-Event-ID", "")
        after = int(last) if last.isdecimal() and len(last) < 19 else filters.after
        return sse.stream(_stream_reader(request), job, after=after)
    only = None if job.parent_id is None else job.pk
    events = event_log.read_events(job.root_id_or_self, after=filters.after, limit=filters.limit, job_id=only)
    return fast_json({"items": events.items, "cursor": events.cursor})


def _stream_reader(request: HttpRequest) -> Reader:
    """Return a stream's reader, which ends with the request's token or session."""
    who = caller(request)
    if who.token is not None:
        return Reader(who.user.pk, token_id=who.token.pk)
    origin = request.headers.get("Origin")
    if origin is not None and not is_own(origin, secure=request.is_secure(), host=request.get_host()):
        raise Forbidden("This stream can be opened by pages of this installation only.", code="origin")
    return Reader(who.user.pk, session=stored_key(request.session.session_key or ""))


@router.get("/jobs/{int:job_id}/logs", response=LogsOut)
def get_logs(request: HttpRequest, job_id: Id, filters: Query[LogsFilter]) -> HttpResponse:
    """Return log lines after a cursor, or the newest ones."""
    job = access.get_job(actor(request), job_id)
    limits: dict[str, Any] = {
        "text": filters.q,
        "level": filters.level,
        "trial": filters.trial,
        "limit": filters.limit,
    }
    if filters.newest:
        lines = event_log.newest_logs(job, **limits)
    else:
        lines = event_log.read_logs(job, after=filters.after, **limits)
    return fast_json({"items": lines.items, "cursor": lines.cursor})


# This must be the last route: its path matches those above.
@router.post("/jobs/{int:job_id}/{command}", response={202: JobOut})
@idempotent
def command_job(request: HttpRequest, job_id: Id, command: Command) -> Status[JobOut]:
    """Pause, resume, finish, stop, kill, retry or clone a job. Only a search can be finished."""
    who = actor(request)
    job = access.get_job(who, job_id, Action.WRITE)
    return Status(202, queries.job_out(_COMMANDS[command](job, by=who), who))
