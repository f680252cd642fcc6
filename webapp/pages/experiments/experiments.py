"""Lists experiments, and submits, clones and archives them."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import experiments as actions
from jobs.answers.experiments.experiments import BestOut
from jobs.models import Experiment, Project
from jobs.queries.experiments import experiments as queries
from jobs.queries.paging import Page, page_of
from jobs.states import JobState
from webapp.pages.experiments.experiment_lookup import experiment_in_project
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    action,
    crumbs,
    notify,
    page,
    redirect,
    redirect_back,
    render_page,
    url,
    valid_choice,
)
from webapp.pages.sorting import Header, column_header
from webapp.template_context import Context

SORTS = ("-updated", "updated", "name", "-name", "-created", "created", "state", "-state")
COLUMNS = (("name", "Name"), ("state", "Last job"), ("updated", "Changed"))


@dataclass(frozen=True)
class ExperimentsPage(Context):
    """A project's experiments, with the list's filters and order."""

    project: Project
    page: Page[Experiment]
    best: dict[int, BestOut]
    filters: dict[str, str]
    archived: bool
    is_filtered: bool
    headers: list[Header]
    tags: list[str]
    people: list[str]
    states: list[str]
    may_write: bool
    crumbs: Crumbs


@page
def list_page(request: Request, project: str) -> HttpResponse:
    """List a project's experiments; the query string holds filters and order."""
    home = access.get_project(request.user, project)
    filters = {name: request.GET.get(name, "") for name in ("q", "tag", "state", "who")}
    archived = request.GET.get("archived") == "1"
    sort = valid_choice(request.GET.get("sort"), SORTS, "-updated")
    rows = queries.experiments_with_state(
        request.user,
        project=home,
        archived=archived,
        text=filters["q"],
        tag=filters["tag"],
        state=filters["state"],
        author=filters["who"],
    )
    sign, column = ("-", sort[1:]) if sort.startswith("-") else ("", sort)
    listed = page_of(rows, cursor=request.GET.get("cursor"), order=sign + queries.SORTS[column])
    context = ExperimentsPage(
        project=home,
        page=listed,
        best=queries.best_scores(listed.items),
        filters=filters,
        archived=archived,
        is_filtered=any(filters.values()) or archived,
        headers=[column_header(name, label, sort) for name, label in COLUMNS],
        tags=queries.tags_in(request.user, home),
        people=queries.authors_in(request.user, home),
        states=["none", *JobState],
        may_write=access.can(request.user, home, Action.WRITE),
        crumbs=crumbs(home.name, "Experiments"),
    )
    return render_page(request, "experiments/list.html", context)


@action
def clone(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Copy an experiment and open the copy in the form."""
    copy = actions.clone(experiment_in_project(request, project, id), by=request.user)
    notify(request, f"Created {copy.name}. It has not been submitted.")
    return redirect("experiment_edit", copy.project.slug, copy.pk)


@action
def archive(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Archive an experiment; the message offers to undo it."""
    experiment = actions.archive(experiment_in_project(request, project, id, Action.WRITE), by=request.user)
    undo = url("experiment_unarchive", project, id)
    notify(request, f"{experiment.name} is archived.", undo=undo)
    return redirect_back(request, url("experiments", project))


@action
def unarchive(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Unarchive an experiment."""
    experiment = actions.archive(
        experiment_in_project(request, project, id, Action.WRITE), archived=False, by=request.user
    )
    notify(request, f"{experiment.name} is unarchived.")
    return redirect_back(request, url("experiments", project))


_ONE = "p/<slug:project>/experiments/<int:id>"
urls = [
    path("p/<slug:project>/experiments", list_page, name="experiments"),
    path(f"{_ONE}/clone", clone, name="experiment_clone"),
    path(f"{_ONE}/archive", archive, name="experiment_archive"),
    path(f"{_ONE}/unarchive", unarchive, name="experiment_unarchive"),
]
