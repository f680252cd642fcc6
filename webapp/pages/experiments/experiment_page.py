"""Shows one experiment, and saves its notes and tags."""

from contextlib import suppress
from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path
from pydantic import ValidationError

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import experiments as actions
from jobs.answers.experiments.experiments import BestOut
from jobs.errors import StaleState
from jobs.models import AuditEvent, Experiment, Job, Project, Revision, Trial
from jobs.queries.code import sandboxes
from jobs.queries.experiments import experiments as queries
from jobs.queries.experiments.experiments import RevisionWithChanges
from jobs.spec.space.summary import Line, summary
from webapp.forms.experiments.experiment.notes import NotesForm
from webapp.pages.experiments.experiment_lookup import experiment_in_project
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    form_page,
    notify,
    page,
    redirect,
    render_page,
    url,
)
from webapp.template_context import Context


@page
def detail(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Show one experiment: jobs, best trials, revisions with their differences, and notes."""
    return _show_experiment(request, experiment_in_project(request, project, id))


@dataclass(frozen=True)
class ExperimentPage(Context):
    """An experiment: its jobs, best trials, revisions and notes."""

    project: Project
    experiment: Experiment
    revisions: list[RevisionWithChanges]
    search_limit: float | None
    space: tuple[Line, ...]
    jobs: list[Job]
    job_count: int
    best_trials: list[Trial]
    best: BestOut | None
    may_write: bool
    may_run: bool
    notes_form: NotesForm
    crumbs: Crumbs
    stale: bool
    last: AuditEvent | None


def _show_experiment(
    request: Request, experiment: Experiment, *, status: int = 200, refused_notes: NotesForm | None = None
) -> HttpResponse:
    """Show an experiment. Refused notes are shown again with the entries and errors."""
    stale = refused_notes is not None and refused_notes.is_stale(experiment.notes_digest)
    revisions = queries.revisions_with_differences(experiment)
    context = ExperimentPage(
        project=experiment.project,
        experiment=experiment,
        revisions=revisions,
        search_limit=_seconds_of_search(revisions[0].revision) if revisions else None,
        space=_describe_space(revisions[0].revision) if revisions else (),
        jobs=list(queries.root_jobs(experiment)[:20]),
        job_count=queries.root_jobs(experiment).count(),
        best_trials=queries.best_trials(experiment),
        best=queries.best_scores([experiment]).get(experiment.pk),
        may_write=access.can(request.user, experiment.project, Action.WRITE),
        may_run=sandboxes.may_run_spec(request.user, experiment),
        notes_form=refused_notes or NotesForm(initial=NotesForm.initial_of(experiment)),
        crumbs=crumbs(("Experiments", url("experiments", experiment.project.slug)), experiment.name),
        stale=stale,
        last=queries.last_change(experiment) if stale else None,
    )
    return render_page(request, "experiments/detail.html", context, status=status)


def _describe_space(revision: Revision) -> tuple[Line, ...]:
    """Describe a revision's search space; empty if the stored spec is invalid by now."""
    with suppress(ValidationError):
        search = revision.spec.search
        return summary(search.space) if search is not None else ()
    return ()


def _seconds_of_search(revision: Revision) -> float | None:
    """Return the time limit, if it alone ends the search; None for others, and for an invalid spec."""
    with suppress(ValidationError):
        search = revision.spec.search
        return search.time_limit * 60 if search is not None and search.time_limit is not None else None
    return None


@form_page
def annotate(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Save notes and tags; a refused form is shown again with its entries."""
    experiment = experiment_in_project(request, project, id, Action.WRITE)
    if request.method != "POST":
        return redirect("experiment", project, id)
    form = NotesForm(request.POST)
    if form.apply(lambda values: _save_notes(request, experiment, **values)) is None:
        experiment.refresh_from_db()
        return _show_experiment(request, experiment, status=form.status, refused_notes=form)
    notify(request, "Notes and tags are saved.")
    return redirect("experiment", project, id)


def _save_notes(request: Request, experiment: Experiment, *, notes: str, tags: str, seen: str) -> Experiment:
    """Save notes and tags unless another person changed them since the page with `seen` was opened.

    Not the experiment's version, which also changes with each draft.
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
    path(_ONE, detail, name="experiment"),
    path(f"{_ONE}/notes", annotate, name="experiment_annotate"),
]
