"""Lists experiments, shows one, and submits, clones, archives and annotates it."""

from contextlib import suppress
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.urls import path
from pydantic import ValidationError

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import experiments as actions
from jobs.errors import NotFound, StaleState
from jobs.models import Experiment, Revision
from jobs.queries.code import sandboxes
from jobs.queries.experiments import experiments as queries
from jobs.queries.paging import page_of
from jobs.spec.space.summary import Line, summary
from jobs.states import JobState
from webapp.forms.experiments.experiment.notes import NotesForm
from webapp.pages.shortcuts import (
    Request,
    action,
    crumbs,
    form_page,
    notify,
    page,
    redirect,
    redirect_back,
    render,
    url,
    valid_choice,
)

SORTS = ("-updated", "updated", "name", "-name", "-created", "created", "state", "-state")
COLUMNS = (("name", "Name"), ("state", "Last job"), ("updated", "Changed"))


class Header(NamedTuple):
    """A sortable column: its label, the order that a click sets, and the `aria-sort` of the present order."""

    label: str
    sort: str
    aria: str


@page
def list_page(request: Request, project: str) -> HttpResponse:
    """List the experiments of a project; the query string holds filters and order."""
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
    shown = page_of(rows, cursor=request.GET.get("cursor"), order=sign + queries.SORTS[column])
    context = {
        "project": home,
        "shown": shown,
        "best": queries.best_scores(shown.items),
        "filters": filters,
        "archived": archived,
        "is_filtered": any(filters.values()) or archived,
        "headers": [_header(name, label, sort) for name, label in COLUMNS],
        "tags": queries.tags_in(request.user, home),
        "people": queries.authors_in(request.user, home),
        "states": ["none", *JobState],
        "may_write": access.can(request.user, home, Action.WRITE),
        "crumbs": crumbs(home.name, "Experiments"),
    }
    return render(request, "experiments/list.html", context)


def _header(name: str, label: str, sort: str) -> Header:
    """Return the header of a column. A click on the column that sorts now reverses the order."""
    if sort.removeprefix("-") != name:
        return Header(label, name if name == "name" else f"-{name}", "none")
    is_down = sort.startswith("-")
    return Header(label, name if is_down else f"-{name}", "descending" if is_down else "ascending")


@page
def detail(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Show one experiment: jobs, best trials, revisions with their differences, and notes."""
    return _detail_page(request, in_project(request, project, id))


def _detail_page(
    request: Request, experiment: Experiment, *, status: int = 200, **instead: Any
) -> HttpResponse:
    """Show an experiment; `instead` overrides context values, such as an invalid form."""
    revisions = queries.revisions_with_differences(experiment)
    context = {
        "project": experiment.project,
        "experiment": experiment,
        "revisions": revisions,
        "search_limit": _seconds_of_search(revisions[0].revision) if revisions else None,
        "space": _describe_space(revisions[0].revision) if revisions else (),
        "jobs": list(queries.root_jobs(experiment)[:20]),
        "job_count": queries.root_jobs(experiment).count(),
        "best_trials": queries.best_trials(experiment),
        "best": queries.best_scores([experiment]).get(experiment.pk),
        "may_write": access.can(request.user, experiment.project, Action.WRITE),
        "may_run": sandboxes.may_run_spec(request.user, experiment),
        "notes_form": NotesForm(initial=NotesForm.initial_of(experiment)),
        "crumbs": crumbs(("Experiments", url("experiments", experiment.project.slug)), experiment.name),
        **instead,
    }
    return render(request, "experiments/detail.html", context, status=status)


def _describe_space(revision: Revision) -> tuple[Line, ...]:
    """Describe the search space of a revision; empty if the stored spec is invalid by now."""
    with suppress(ValidationError):
        search = revision.spec.search
        return summary(search.space) if search is not None else ()
    return ()


def _seconds_of_search(revision: Revision) -> float | None:
    """Return the time limit of a search that it alone ends; None for others, and for an invalid spec."""
    with suppress(ValidationError):
        search = revision.spec.search
        return search.time_limit * 60 if search is not None and search.time_limit is not None else None
    return None


def in_project(
    request: Request,
    project: str,
    id: int,  # noqa: A002
    wanted: Action = Action.VIEW,
) -> Experiment:
    """Return an experiment of the project in the address.

    Raises:
        NotFound: the experiment belongs to another project.
    """
    experiment = access.get_experiment(request.user, id, wanted)
    if experiment.project.slug != project:
        raise NotFound(f"Project {project!r} has no experiment {id}.")
    return experiment


@action
def submit(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Submit the newest revision of an experiment as a job."""
    job = actions.submit(in_project(request, project, id, Action.WRITE), by=request.user)
    notify(request, f"Job {job.pk} is queued.")
    return redirect("job", job.pk)


@action
def clone(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Copy an experiment and open the copy in the form."""
    copy = actions.clone(in_project(request, project, id), by=request.user)
    notify(request, f"Created {copy.name}. It has not been submitted.")
    return redirect("experiment_edit", copy.project.slug, copy.pk)


@action
def archive(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Archive an experiment; the message offers to undo it."""
    experiment = actions.archive(in_project(request, project, id, Action.WRITE), by=request.user)
    undo = url("experiment_unarchive", project, id)
    notify(request, f"{experiment.name} is archived.", undo=undo)
    return redirect_back(request, url("experiments", project))


@action
def unarchive(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Unarchive an experiment."""
    experiment = actions.archive(
        in_project(request, project, id, Action.WRITE), archived=False, by=request.user
    )
    notify(request, f"{experiment.name} is unarchived.")
    return redirect_back(request, url("experiments", project))


@form_page
def annotate(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Save notes and tags; a refused form is shown again with its entries."""
    experiment = in_project(request, project, id, Action.WRITE)
    if request.method != "POST":
        return redirect("experiment", project, id)
    form = NotesForm(request.POST)
    if form.apply(lambda given: _save_notes(request, experiment, **given)) is None:
        experiment.refresh_from_db()
        stale = form.is_stale(experiment.notes_digest)
        last = queries.last_change(experiment) if stale else None
        return _detail_page(request, experiment, status=form.status, notes_form=form, stale=stale, last=last)
    notify(request, "Notes and tags are saved.")
    return redirect("experiment", project, id)


def _save_notes(request: Request, experiment: Experiment, *, notes: str, tags: str, seen: str) -> Experiment:
    """Save notes and tags unless another person changed them since the page with `seen` was opened.

    Not the version of the experiment, which also changes with each draft.
    """
    if seen not in ("", experiment.notes_digest):
        raise StaleState("Nothing was saved: the notes or tags were changed after you opened this page.")
    # The action compares the version again when it writes, since another request may write in between.
    return actions.change(
        experiment,
        notes=notes,
        tags=tags.split(","),
        seen=experiment.version if seen else None,
        by=request.user,
    )


_ONE = "p/<slug:project>/experiments/<int:id>"
urls = [
    path("p/<slug:project>/experiments", list_page, name="experiments"),
    path(_ONE, detail, name="experiment"),
    path(f"{_ONE}/submit", submit, name="experiment_submit"),
    path(f"{_ONE}/clone", clone, name="experiment_clone"),
    path(f"{_ONE}/archive", archive, name="experiment_archive"),
    path(f"{_ONE}/unarchive", unarchive, name="experiment_unarchive"),
    path(f"{_ONE}/notes", annotate, name="experiment_annotate"),
]
