"""Operations on a search's trials: lists, control, columns, timeline, importance and downloads."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import AfterValidator, Field, StringConstraints

from jobs import access, clock
from jobs.access import Action
from jobs.actions.search import ensembles
from jobs.actions.search import trials as actions
from jobs.answers.base import Parameter
from jobs.answers.runs.jobs import JobOut
from jobs.answers.search.search_results import ColumnsOut, ImportanceOut, TimelineOut
from jobs.answers.search.trials import TrialOut
from jobs.models import Job, Trial
from jobs.queries.runs import jobs as job_queries
from jobs.queries.runs import running_time
from jobs.queries.search import exports, outcomes, running_executions, timeline, trial_columns
from jobs.queries.search import trials as queries
from jobs.spec.name_lists import read_names
from jobs.states import FINAL
from webapp import analysis
from webapp.api.auth import actor
from webapp.api.etags import is_not_modified, set_etag
from webapp.api.idempotency import idempotent
from webapp.api.media import JSON, fast_json
from webapp.api.paging import Page, Paging, paginate
from webapp.api.shapes import Id, In, Number, Slug
from webapp.downloads import describe_download, stream_download

router = Router()
CSV = describe_download("text/csv")

MAX_CACHED = 8
_columns_of_ended: dict[tuple[int, str], bytes] = {}
"""The responses with all columns of ended searches, by job and version, in the memory of this process."""

Numbers = Annotated[str, StringConstraints(pattern=r"^(\d{1,9}(,\d{1,9})*)?$", max_length=5000)]


def _check_names(text: str) -> str:
    read_names(text)
    return text


Names = Annotated[str, StringConstraints(max_length=5000), AfterValidator(_check_names)]
NAMES = "Metric names, separated by commas; one with a comma in quotes."


class ColumnsFilter(Schema):
    """Where to read the columns."""

    after: str | None = Field(
        None,
        pattern=trial_columns.CURSOR,
        description="The `cursor` of the last response: only trials that may have changed since then.",
    )


class TrialsFilter(Schema):
    """Filters for trials."""

    trials: Numbers = Field("", description="Trial numbers, separated by commas; empty means all.")


class MetricsExport(TrialsFilter):
    """Filters for metric series."""

    names: Names = Field("", description=NAMES)


class EnsembleIn(In):
    """An ensemble's trials."""

    trials: list[Number] = Field(
        min_length=ensembles.MIN_TRIALS, max_length=ensembles.MAX_TRIALS, description="Their numbers."
    )


class TrainIn(In):
    """How the trained model is used."""

    register_as: Slug | None = Field(
        None, description="The registered model of which it becomes a version; created if it does not exist."
    )


class ContinueIn(In):
    """Where a continued training ends."""

    epochs: int | None = Field(
        None, ge=1, le=2**31 - 1, description="The last epoch; required for a completed trial."
    )


class TrialIn(In):
    """A configuration to try."""

    values: dict[str, Parameter] = Field(max_length=200, description="One value per hyperparameter.")


def numbers_of(text: str) -> list[int]:
    """Return the numbers in a list such as `1,2,3`."""
    return [int(part) for part in text.split(",") if part]


@router.get("/jobs/{int:job_id}/trials", response=Page[TrialOut])
def list_trials(request: HttpRequest, job_id: Id, paging: Query[Paging]) -> Page[TrialOut]:
    """List a search's trials by number."""
    job = access.get_job(actor(request), job_id)
    best, front = queries.best_number(job), outcomes.pareto_front(job)
    running = running_executions.running_in_search(job)
    breaks = running_time.breaks_of_trials(job)

    def show(row: Trial) -> TrialOut:
        return queries.trial_out(row, best=best, front=front, running=running, breaks=breaks)

    sorts = {"number": "number", "id": "pk"}
    return paginate(
        Page[TrialOut], queries.trials_with_relations(job), paging, show, sorts=sorts, default="number"
    )


@router.post("/jobs/{int:job_id}/trials", response={201: TrialOut})
@idempotent
def create_trial(request: HttpRequest, job_id: Id, body: TrialIn) -> Status[TrialOut]:
    """Queue one configuration by hand."""
    who = actor(request)
    row = actions.queue_by_hand(access.get_job(who, job_id, Action.WRITE), body.values, by=who)
    return Status(201, queries.trial_out(row, best=None))


@router.get("/jobs/{int:job_id}/trials/{int:number}", response=TrialOut)
def get_trial(request: HttpRequest, job_id: Id, number: Number) -> TrialOut:
    """Return a trial."""
    row = access.get_trial(actor(request), job_id, number)
    return queries.trial_out(row, best=queries.best_number(row.job))


@router.post("/jobs/{int:job_id}/trials/{int:number}/retry", response={202: TrialOut})
@idempotent
def retry_trial(request: HttpRequest, job_id: Id, number: Number) -> Status[TrialOut]:
    """Run a failed or stopped trial again. Broken executions resume from their newest checkpoints."""
    who = actor(request)
    row = access.get_trial(who, job_id, number, Action.WRITE)
    return Status(202, queries.trial_out(actions.retry(row, by=who), best=None))


@router.post("/jobs/{int:job_id}/trials/{int:number}/again", response={202: TrialOut})
@idempotent
def repeat_trial(request: HttpRequest, job_id: Id, number: Number) -> Status[TrialOut]:
    """Queue a new trial with this one's values."""
    who = actor(request)
    row = access.get_trial(who, job_id, number, Action.WRITE)
    return Status(202, queries.trial_out(actions.queue_by_hand(row.job, row.values, by=who), best=None))


@router.post("/jobs/{int:job_id}/trials/{int:number}/train", response={202: JobOut})
@idempotent
def train_trial(
    request: HttpRequest, job_id: Id, number: Number, body: TrainIn | None = None
) -> Status[JobOut]:
    """Queue a training job with this trial's values. Returns the new job."""
    who = actor(request)
    row = access.get_trial(who, job_id, number, Action.WRITE)
    model = body.register_as if body is not None else None
    return Status(202, job_queries.job_out(actions.retrain(row, by=who, register_as=model)))


@router.post("/jobs/{int:job_id}/trials/{int:number}/continue", response={202: TrialOut})
@idempotent
def continue_trial(
    request: HttpRequest, job_id: Id, number: Number, body: ContinueIn | None = None
) -> Status[TrialOut]:
    """Continue a trial's training from its newest checkpoints."""
    who = actor(request)
    row = access.get_trial(who, job_id, number, Action.WRITE)
    new_trial = actions.continue_training(row, body.epochs if body is not None else None, by=who)
    return Status(202, queries.trial_out(new_trial, best=None))


@router.get("/jobs/{int:job_id}/trials/columns", response=ColumnsOut)
def get_trial_columns(request: HttpRequest, job_id: Id, filters: Query[ColumnsFilter]) -> HttpResponse:
    """Return all trials in a search, one list per column. `If-None-Match` returns 304 if nothing changed."""
    search = access.get_job(actor(request), job_id)
    outcomes.search_of(search)  # refuses other jobs
    version = trial_columns.columns_tag(search)
    if is_not_modified(request, version):
        return HttpResponse(status=304)
    response = _columns(search, version, filters.after)
    set_etag(response, version)
    # The browser stores the response, and revalidates it each time.
    response["Cache-Control"] = "private, no-cache"
    return response


def _columns(search: Job, version: str, after: str | None) -> HttpResponse:
    """Return the columns. An ended search's complete columns are cached."""
    if after is not None or search.state not in FINAL:
        return fast_json(trial_columns.read_columns(search, after=after))
    key = (search.pk, version)
    content = _columns_of_ended.get(key)
    if content is None:
        content = fast_json(trial_columns.read_columns(search)).content
        if len(_columns_of_ended) >= MAX_CACHED:
            # All at once, without a lock: other threads keep the bytes that they have already read.
            _columns_of_ended.clear()
        _columns_of_ended[key] = content
    return HttpResponse(content, content_type=JSON)


@router.get("/jobs/{int:job_id}/timeline", response=TimelineOut)
def get_timeline(request: HttpRequest, job_id: Id) -> HttpResponse:
    """Return when and on which worker each trial ran, one list per column."""
    search = access.get_job(actor(request), job_id)
    outcomes.search_of(search)  # refuses other jobs
    return fast_json(timeline.read_timeline(search, now=clock.estimate()))


@router.get("/jobs/{int:job_id}/importance", response=ImportanceOut)
def get_importance(request: HttpRequest, job_id: Id) -> ImportanceOut:
    """Return each hyperparameter's importance. Ask again while `state` is `computing`."""
    return analysis.importance_of(access.get_job(actor(request), job_id))


@router.get("/jobs/{int:job_id}/trials.csv", response={200: None}, openapi_extra=CSV)
def download_trials(request: HttpRequest, job_id: Id, filters: Query[TrialsFilter]) -> StreamingHttpResponse:
    """Download a search's trials as CSV, one row per execution."""
    search = access.get_job(actor(request), job_id)
    # Refuses other jobs now: the generator would do so only after the response has begun.
    outcomes.search_of(search)
    rows = exports.trial_rows(search, numbers_of(filters.trials))
    return stream_download(
        request, exports.csv_blocks(rows), name=f"job-{job_id}-trials.csv", kind="text/csv"
    )


@router.get("/jobs/{int:job_id}/metrics.csv", response={200: None}, openapi_extra=CSV)
def download_metrics(
    request: HttpRequest, job_id: Id, filters: Query[MetricsExport]
) -> StreamingHttpResponse:
    """Download all points in a job's metric series as CSV."""
    job = access.get_job(actor(request), job_id)
    rows = exports.metric_rows(job, read_names(filters.names), numbers_of(filters.trials))
    return stream_download(
        request, exports.csv_blocks(rows), name=f"job-{job_id}-metrics.csv", kind="text/csv"
    )


@router.post("/jobs/{int:job_id}/ensemble", response={202: JobOut})
@idempotent
def create_ensemble(request: HttpRequest, job_id: Id, body: EnsembleIn) -> Status[JobOut]:
    """Retrain some trials in a search and combine them in an ensemble. Returns the new job."""
    who = actor(request)
    search = access.get_job(who, job_id, Action.WRITE)
    return Status(202, job_queries.job_out(ensembles.queue_ensemble(search, body.trials, by=who)))
