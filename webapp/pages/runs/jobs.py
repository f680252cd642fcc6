"""Lists jobs, shows one, and pauses, resumes, finishes, stops, kills and retries it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.runs import control
from jobs.answers.runs.jobs import JobOut
from jobs.errors import NotFound
from jobs.kinds import public_names
from jobs.kinds.base import Facts
from jobs.kinds.inputs import submittable_kinds
from jobs.models import Job
from jobs.queries import paging
from jobs.queries.paging import Page
from jobs.queries.runs import jobs as job_queries
from jobs.queries.search import outcomes
from jobs.states import JobState
from webapp.forms.search.search_changes import ReviseForm
from webapp.forms.search.trials import TrialForm
from webapp.pages.runs.job_head import head_contexts
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
from webapp.template_context import Context

COMMANDS = {
    "pause": (control.pause, "pauses at its next checkpoint"),
    "resume": (control.resume, "resumes"),
    "finish": (control.finish, "finishes with the trials it has"),
    "stop": (control.stop, "stops after a checkpoint"),
    "kill": (control.kill, "is killed"),
    "retry": (control.retry, "is retried"),
}


@dataclass(frozen=True)
class JobsPage(Context):
    """The jobs that the user may see, and the list's filters."""

    page: Page[Job]
    rows: list[tuple[Job, JobOut, str]]
    states: list[str]
    kinds: tuple[str, ...]
    submittable: Sequence[Facts]
    state: str
    kind: str
    filtered: bool


@page
def jobs(request: Request) -> HttpResponse:
    """List the jobs that the user may see."""
    rows = job_queries.jobs_for_lists(access.visible_jobs(request.user))
    state = valid_choice(request.GET.get("state"), [str(s) for s in JobState], "")
    kind = valid_choice(request.GET.get("kind"), public_names(), "")
    # Unless filtered by kind, children are shown on their root's page alone, profiles on their data set's.
    rows = rows.called(kind) if kind else rows.roots().listed()
    if state:
        rows = rows.filter(state=state)
    if project := request.GET.get("project"):
        rows = rows.filter(project__slug=project)
    listed = paging.page_of(rows, cursor=request.GET.get("cursor"))
    context = JobsPage(
        page=listed,
        rows=[
            (row, detail, outcomes.objective_of(row).metric if row.facts.has_trials else "")
            for row, detail in zip(
                listed.items, job_queries.jobs_out(listed.items, request.user), strict=True
            )
        ],
        states=[str(s) for s in JobState],
        kinds=public_names(),
        submittable=submittable_kinds() if writable_projects(request.user).exists() else (),
        state=state,
        kind=kind,
        filtered=bool(state or kind or project),
    )
    return render_page(request, "runs/list.html", context, partial="rows")


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
