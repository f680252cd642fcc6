"""A search's trials as a whole: columns for charts, timeline, importance, downloads, an ensemble of some."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field, StringConstraints

from jobs import access, clock
from jobs.access import Action
from jobs.actions import ensembles
from jobs.models import Job
from jobs.queries import columns, exports, outcomes, timeline
from jobs.queries import jobs as shown
from jobs.states import FINAL
from webapp import analysis
from webapp.api.auth import actor
from webapp.api.downloads import streamed
from webapp.api.etags import give, is_known
from webapp.api.idempotency import idempotent
from webapp.api.media import JSON, fast_json
from webapp.api.shapes import Id, In, Json, Number

router = Router()

MOST_KEPT = 8
_ended: dict[tuple[int, str], bytes] = {}

Numbers = Annotated[str, StringConstraints(pattern=r"^(\d{1,9}(,\d{1,9})*)?$", max_length=5000)]


class ColumnsFilter(Schema):
    """`?after=` the `cursor` of an earlier answer: only what may have changed since then."""

    after: str | None = Field(None, pattern=columns.CURSOR)


class TrialsFilter(Schema):
    """`?trials=1,2,3`: only these; all without."""

    trials: Numbers = ""


class MetricsExport(TrialsFilter):
    """`?names=a,b&trials=1,2,3`."""

    names: str = Field("", max_length=5000)


class EnsembleIn(In):
    """The trials that shall make an ensemble, by number."""

    trials: list[Number] = Field(min_length=ensembles.LEAST, max_length=ensembles.MOST)


def numbers_of(text: str) -> list[int]:
    """Return the numbers of a list such as `1,2,3`."""
    return [int(part) for part in text.split(",") if part]


@router.get("/jobs/{int:job_id}/trials/columns", response=Json)
def get_columns(request: HttpRequest, job_id: Id, filters: Query[ColumnsFilter]) -> HttpResponse:
    """Return a search's trials, a list a column; `If-None-Match` answers 304 while nothing has changed."""
    search = access.get_job(actor(request), job_id)
    outcomes.search_of(search)
    version = columns.version(search)
    if is_known(request, version):
        return HttpResponse(status=304)
    response = _columns(search, version, filters.after)
    give(response, version)
    response["Cache-Control"] = "private, no-cache"  # kept by the browser, and asked for each time
    return response


def _columns(search: Job, version: str, after: str | None) -> HttpResponse:
    """Answer the whole of an ended search from memory once it was asked for."""
    if after is not None or search.state not in FINAL:
        return fast_json(columns.read(search, after=after))
    key = (search.pk, version)
    content = _ended.get(key)
    if content is None:
        content = fast_json(columns.read(search)).content
        if len(_ended) >= MOST_KEPT:
            _ended.clear()  # other threads may be looking: whoever found something has it
        _ended[key] = content
    return HttpResponse(content, content_type=JSON)


@router.get("/jobs/{int:job_id}/timeline", response=Json)
def get_timeline(request: HttpRequest, job_id: Id) -> HttpResponse:
    """Return which trial ran when, on which worker and in which lane there, a list a column."""
    search = access.get_job(actor(request), job_id)
    outcomes.search_of(search)
    return fast_json(timeline.read(search, now=clock.estimate()))


@router.get("/jobs/{int:job_id}/importance", response=Json)
def get_importance(request: HttpRequest, job_id: Id) -> Json:
    """Return how much each hyperparameter matters. While `state` is `computing`, ask again in a second."""
    return analysis.importance_of(access.get_job(actor(request), job_id))


@router.get("/jobs/{int:job_id}/trials.csv", response={200: bytes})
def download_trials(request: HttpRequest, job_id: Id, filters: Query[TrialsFilter]) -> StreamingHttpResponse:
    """Download a search's trials as CSV, a row an execution."""
    search = access.get_job(actor(request), job_id)
    outcomes.search_of(search)
    rows = exports.trials(search, numbers_of(filters.trials))
    return streamed(request, exports.lines(rows), name=f"job-{job_id}-trials.csv", kind="text/csv")


@router.get("/jobs/{int:job_id}/metrics.csv", response={200: bytes})
def download_metrics(
    request: HttpRequest, job_id: Id, filters: Query[MetricsExport]
) -> StreamingHttpResponse:
    """Download every point of a job's curves as CSV."""
    job = access.get_job(actor(request), job_id)
    names = [name for name in filters.names.split(",") if name]
    rows = exports.metrics(job, names, numbers_of(filters.trials))
    return streamed(request, exports.lines(rows), name=f"job-{job_id}-metrics.csv", kind="text/csv")


@router.post("/jobs/{int:job_id}/ensemble", response={202: Json})
@idempotent
def make_ensemble(request: HttpRequest, job_id: Id, body: EnsembleIn) -> Status[Json]:
    """Retrain some trials of a search and pool them, in a job of its own, which is the answer."""
    who = actor(request)
    search = access.get_job(who, job_id, Action.WRITE)
    return Status(202, shown.detail(ensembles.make(search, body.trials, by=who)))
