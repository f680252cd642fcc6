"""Lists jobs, shows one, and pauses, resumes, finishes, stops, kills and retries it."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.runs import control
from jobs.answers.runs.jobs import JobOut
from jobs.errors import NotFound
from jobs.kinds import titles_by_public_name
from jobs.kinds.base import Facts
from jobs.kinds.inputs import submittable_kinds
from jobs.models import Job
from jobs.queries import paging
from jobs.queries.paging import Page
from jobs.queries.runs import jobs as job_queries
from jobs.queries.runs.job_list import (
    SORTS,
    STATE_SETS,
    JobFilter,
    JobSubject,
    filter_jobs,
    subject_of,
    unknown_value,
)
from jobs.queries.search import outcomes
from jobs.states import JobState
from webapp.forms.search.search_changes import ReviseForm
from webapp.forms.search.trials import TrialForm
from webapp.pages.runs.job_head import head_contexts
from webapp.pages.runs.job_orders import ORDERS, Order
from webapp.pages.runs.job_tabs import tab_contexts, tab_names
from webapp.pages.shortcuts import (
    Request,
    action,
    is_partial,
    notify,
    page,
    redirect,
    render_page,
    valid_choice,
    writable_projects,
)
from webapp.pages.sorting import Header, column_header
from webapp.scope import Scope, scope_of
from webapp.template_context import Context

FIELDS = {"text": "q", "person": "who"}
"""The names of filters in the address, where they differ."""

MAX_DATASETS = 200
"""The most data sets that the filter offers; an address may name any."""

COMMANDS = {
    "pause": (control.pause, "pauses at its next checkpoint"),
    "resume": (control.resume, "resumes"),
    "finish": (control.finish, "finishes with the trials it has"),
    "stop": (control.stop, "stops after a checkpoint"),
    "kill": (control.kill, "is killed"),
    "retry": (control.retry, "is retried"),
}


COLUMNS = (("name", "Job"), ("state", "State"), ("kind", "Kind"), ("created", "Created"))
"""The sortable columns, with their labels."""


class JobRow(NamedTuple):
    """A job in the list, with its answer in REST, the metric of its scores, its data set and its model."""

    job: Job
    detail: JobOut
    metric: str
    subject: JobSubject


@dataclass(frozen=True)
class JobsPage(Context):
    """The jobs that the user may see, and the list's filters and order."""

    page: Page[Job]
    rows: list[JobRow]
    states: dict[str, list[str]]
    state_sets: list[str]
    kinds: dict[str, str]
    people: dict[str, str]
    datasets: list[str]
    submittable: Sequence[Facts]
    orders: dict[str, Order]
    chosen: JobFilter
    sort: str
    headers: dict[str, Header]
    unknown: str
    filtered: bool


@page
def jobs(request: Request) -> HttpResponse:
    """List the jobs that the user may see; the query string holds filters and order."""
    chosen = JobFilter(
        **{field.name: request.GET.get(FIELDS.get(field.name, field.name), "") for field in fields(JobFilter)}
    )
    scope = scope_of(request, request.user)
    rows = scope.limit(job_queries.jobs_for_lists(access.visible_jobs(request.user)))
    sort = valid_choice(
        request.GET.get("sort"), [f"{sign}{name}" for name in SORTS for sign in ("", "-")], "-created"
    )
    sign, column = ("-", sort[1:]) if sort.startswith("-") else ("", sort)
    listed = paging.page_of(
        filter_jobs(rows, chosen), cursor=request.GET.get("cursor"), order=sign + SORTS[column]
    )
    details = job_queries.jobs_out(listed.items, request.user)
    may_write = writable_projects(request.user).exists()
    context = JobsPage(
        page=listed,
        rows=[_list_row(row, detail) for row, detail in zip(listed.items, details, strict=True)],
        states={"only": [str(s) for s in JobState]},
        state_sets=list(STATE_SETS),
        kinds={name: f"{title}, steps too" for name, title in titles_by_public_name().items()},
        people={request.user.username: "me"},
        datasets=_dataset_names(request, scope, chosen.dataset),
        submittable=submittable_kinds() if may_write else (),
        orders=ORDERS if may_write else {},
        chosen=chosen,
        sort=request.GET.get("sort", ""),
        headers={
            name: column_header(name, label, sort, ascending=("name", "state", "kind"))
            for name, label in COLUMNS
        },
        unknown=unknown_value(chosen),
        filtered=any(astuple(chosen)) or scope.project is not None,
    )
    return render_page(request, "runs/list.html", context, partial="rows")


def _list_row(row: Job, detail: JobOut) -> JobRow:
    metric = outcomes.objective_of(row).metric if row.facts.has_trials else ""
    return JobRow(row, detail, metric, subject_of(row))


def _dataset_names(request: Request, scope: Scope, chosen: str) -> list[str]:
    """Return the slugs of the data sets in the scope, which the filter offers, with the chosen one."""
    rows = scope.limit(access.visible_datasets(request.user), or_shared=True)
    slugs = rows.order_by("slug").values_list("slug", flat=True).distinct()
    return sorted({*slugs[:MAX_DATASETS], *([chosen] if chosen else [])})


@page
def job(request: Request, job_id: int) -> HttpResponse:
    """Show one job; `?part=head` and `?part=body` are the parts that are reloaded live."""
    row = access.get_job(request.user, job_id)
    return job_page(request, row, request.GET.get("tab"))


def job_page(
    request: Request,
    row: Job,
    tab: str | None,
    *,
    status: int = 200,
    revise_form: ReviseForm | None = None,
    trial_form: TrialForm | None = None,
) -> HttpResponse:
    """Show a job with one tab. A refused form is shown again with its entries and errors."""
    names = tab_names(row)
    tab = valid_choice(tab, names, "overview")
    part = valid_choice(request.GET.get("part"), ("head", "body"), "")
    contexts = head_contexts(request, row, tab, names, revise_form)
    # The head is requested again every few seconds, and needs nothing of the tab below it.
    if part != "head" or not is_partial(request):
        contexts += tab_contexts(request, row, tab, trial_form)
    return render_page(request, "runs/job.html", *contexts, partial=part, status=status)


@action
def order(request: Request, job_id: int, what: str) -> HttpResponse:
    """Pause, resume, finish, stop, kill or retry a job."""
    if what not in COMMANDS:
        raise NotFound(f"A job cannot {what}.")
    row = access.get_job(request.user, job_id, Action.WRITE)
    command, effect = COMMANDS[what]
    command(row, by=request.user)
    notify(request, f"Job {row.pk} {effect}.")
    return redirect("job", row.pk)


urls = [
    path("jobs", jobs, name="jobs"),
    path("jobs/<int:job_id>", job, name="job"),
    path("jobs/<int:job_id>/<slug:what>", order, name="job_order"),
]
