"""The list of experiments, one experiment, and what is done to it."""

from contextlib import suppress
from typing import NamedTuple

from django.http import HttpResponse
from django.urls import path
from pydantic import ValidationError

from jobs import access
from jobs.access import Action
from jobs.actions import experiments as actions
from jobs.contracts.summary import Line, summary
from jobs.errors import NotFound
from jobs.models import Experiment, Revision
from jobs.queries import experiments as queries
from jobs.queries.paging import page_of
from jobs.states import JobState
from webapp.pages.shortcuts import Request, action, chosen, crumbs, go, go_back, page, render, say, url

SORTS = ("-updated", "updated", "name", "-name", "-created", "created", "state", "-state")
COLUMNS = (("name", "Name"), ("state", "Last job"), ("updated", "Changed"))


class Header(NamedTuple):
    """A column that sorts: its label, the order a click asks for, and the order in force."""

    label: str
    sort: str
    aria: str


@page
def list_page(request: Request, project: str) -> HttpResponse:
    """Show the experiments of a project; filters and order are in the address."""
    home = access.get_project(request.user, project)
    asked = {name: request.GET.get(name, "") for name in ("q", "tag", "state", "who")}
    archived = request.GET.get("archived") == "1"
    sort = chosen(request.GET.get("sort"), SORTS, "-updated")
    rows = queries.listed(
        request.user,
        project=home,
        archived=archived,
        text=asked["q"],
        tag=asked["tag"],
        state=asked["state"],
        who=asked["who"],
    )
    sign, column = ("-", sort[1:]) if sort.startswith("-") else ("", sort)
    shown = page_of(rows, cursor=request.GET.get("cursor"), order=sign + queries.SORTS[column])
    context = {
        "project": home,
        "shown": shown,
        "best": queries.best_of(shown.items),
        "asked": asked,
        "archived": archived,
        "is_filtered": any(asked.values()) or archived,
        "headers": [_header(name, label, sort) for name, label in COLUMNS],
        "tags": queries.tags_in(request.user, home),
        "people": queries.authors_in(request.user, home),
        "states": ["none", *JobState],
        "may_write": access.can(request.user, home, Action.WRITE),
        "crumbs": crumbs(home.name, "Experiments"),
    }
    return render(request, "experiments/list.html", context)


def _header(name: str, label: str, sort: str) -> Header:
    """Say what a click on a column asks for: the other way round if it is in force."""
    if sort.removeprefix("-") != name:
        return Header(label, name if name == "name" else f"-{name}", "none")
    is_down = sort.startswith("-")
    return Header(label, name if is_down else f"-{name}", "descending" if is_down else "ascending")


@page
def detail(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Show one experiment: jobs, best trials, revisions with what changed, notes."""
    experiment = in_project(request, project, id)
    revisions = queries.revisions(experiment)
    context = {
        "project": experiment.project,
        "experiment": experiment,
        "revisions": revisions,
        "space": _space(revisions[0].revision) if revisions else (),
        "jobs": list(queries.root_jobs(experiment)[:20]),
        "job_count": queries.root_jobs(experiment).count(),
        "best_trials": queries.best_trials(experiment),
        "best": queries.best_of([experiment]).get(experiment.pk),
        "may_write": access.can(request.user, experiment.project, Action.WRITE),
        "crumbs": crumbs(("Experiments", url("experiments", experiment.project.slug)), experiment.name),
    }
    return render(request, "experiments/detail.html", context)


def _space(revision: Revision) -> tuple[Line, ...]:
    """Return a revision's search space in words; nothing for one that today's rules would not take."""
    with suppress(ValidationError):
        search = revision.spec.search
        return summary(search.space) if search is not None else ()
    return ()


def in_project(
    request: Request,
    project: str,
    id: int,  # noqa: A002
    wanted: Action = Action.VIEW,
) -> Experiment:
    """Return an experiment under the project that its address names."""
    experiment = access.get_experiment(request.user, id, wanted)
    if experiment.project.slug != project:
        raise NotFound(f"Project {project!r} has no experiment {id}.")
    return experiment


@action
def submit(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Queue it once more."""
    job = actions.submit(in_project(request, project, id, Action.WRITE), by=request.user)
    say(request, f"Job {job.pk} is queued.")
    return go("job", job.pk)


@action
def clone(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Make a copy and open it in the form."""
    copy = actions.clone(in_project(request, project, id), by=request.user)
    say(request, f"This is {copy.name}; nothing of it has run.")
    return go("experiment_edit", copy.project.slug, copy.pk)


@action
def archive(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Take it out of the list; the toast offers to undo that."""
    experiment = actions.archive(in_project(request, project, id, Action.WRITE), by=request.user)
    undo = url("experiment_unarchive", project, id)
    say(request, f"{experiment.name} is archived.", undo=undo)
    return go_back(request, url("experiments", project))


@action
def unarchive(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Take it back into the list."""
    experiment = actions.archive(
        in_project(request, project, id, Action.WRITE), archived=False, by=request.user
    )
    say(request, f"{experiment.name} is back in the list.")
    return go_back(request, url("experiments", project))


@action
def delete(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Delete it with everything that came of it."""
    experiment = in_project(request, project, id, Action.WRITE)
    actions.delete(experiment, by=request.user)
    say(request, f"{experiment.name} is deleted.")
    return go("experiments", project)


@action
def annotate(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Keep notes and tags."""
    experiment = in_project(request, project, id, Action.WRITE)
    tags = request.POST.get("tags", "").split(",")
    actions.change(experiment, notes=request.POST.get("notes", ""), tags=tags, by=request.user)
    say(request, "Notes and tags are kept.")
    return go("experiment", project, id)


_ONE = "p/<slug:project>/experiments/<int:id>"
urls = [
    path("p/<slug:project>/experiments", list_page, name="experiments"),
    path(_ONE, detail, name="experiment"),
    path(f"{_ONE}/submit", submit, name="experiment_submit"),
    path(f"{_ONE}/clone", clone, name="experiment_clone"),
    path(f"{_ONE}/archive", archive, name="experiment_archive"),
    path(f"{_ONE}/unarchive", unarchive, name="experiment_unarchive"),
    path(f"{_ONE}/delete", delete, name="experiment_delete"),
    path(f"{_ONE}/notes", annotate, name="experiment_annotate"),
]
