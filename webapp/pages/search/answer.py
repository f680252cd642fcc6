"""Starts a search's next steps: its best trials again, a smaller range, or a version."""

from dataclasses import replace

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import follow_up
from jobs.actions.search import trials
from jobs.errors import Conflict
from jobs.models import Job, Project
from jobs.queries.registry import registry
from jobs.spec.experiment import ExperimentSpec
from webapp.pages.search.trial_starts import start_of_retraining
from webapp.pages.shortcuts import Request, notify, redirect, start_page, url
from webapp.pages.starts import (
    Start,
    plan_figures,
    plan_of_spec,
    show_start,
    wants_draft,
    wants_registration,
)


@start_page
def repeat(request: Request, job_id: int) -> HttpResponse:
    """Train the best two trials again with new seeds."""
    search = access.get_job(request.user, job_id, Action.WRITE)
    if request.method == "POST":
        repetition = follow_up.repeat_best(search, by=request.user)
        notify(request, f"Job {repetition.pk} trains the best two trials of job {search.pk} again.")
        return redirect("job", repetition.pk)
    spec, ranked = follow_up.repeating_spec(search, by=request.user)
    first, second = (trial.number for trial in ranked)
    start = _start_of_follow_up(request, search, spec)
    start = replace(
        start,
        heading="Train the best two again",
        about=f"A new search trains trials {first} and {second} of job {search.pk} again and compares them. "
        "It registers no version.",
        sameness="New seeds: it shows whether the lead is more than luck.",
    )
    return show_start(request, start)


@start_page
def narrow(request: Request, job_id: int) -> HttpResponse:
    """Search a smaller range around the best trial."""
    search = access.get_job(request.user, job_id, Action.WRITE)
    if wants_draft(request):
        experiment = follow_up.draft_narrower_search(search, by=request.user)
        notify(request, f"Created {experiment.name}. It has not been submitted.")
        return redirect("experiment_edit", experiment.project.slug, experiment.pk)
    if request.method == "POST":
        registers = wants_registration(request)
        narrower = follow_up.queue_narrower_search(search, by=request.user, registers=registers)
        notify(request, f"Job {narrower.pk} searches a smaller range.")
        return redirect("job", narrower.pk)
    spec, best = follow_up.narrower_spec(search, by=request.user)
    registration = spec.after.register_
    start = replace(
        _start_of_follow_up(request, search, spec),
        heading="Search a smaller range",
        about=f"A new search in a smaller space around trial {best.number} of job {search.pk}.",
        model=registration.model if registration is not None else "",
        may_draft=True,
    )
    return show_start(request, start)


def _start_of_follow_up(request: Request, search: Job, spec: ExperimentSpec) -> Start:
    """Describe a search that follows from another one."""
    plan, problems = plan_of_spec(
        _project_of(search), spec.to_json(), by=request.user, experiment=search.experiment
    )
    return Start(
        heading="", about="", figures=plan_figures(plan), problems=problems, back=url("job", search.pk)
    )


def _project_of(search: Job) -> Project:
    if search.project is None:
        raise Conflict(f"job {search.pk} does not come from an experiment")
    return search.project


@start_page
def register_trial(request: Request, job_id: int, number: int) -> HttpResponse:
    """Retrain a trial and register its model as a version."""
    row = access.get_trial(request.user, job_id, number, Action.WRITE)
    entries = request.POST if request.method == "POST" else request.GET
    model = _chosen_model(row.job, entries.get("model", ""))
    if request.method == "POST":
        retraining = trials.retrain(row, by=request.user, register_as=model)
        notify(
            request, f"Job {retraining.pk} retrains trial {number}; its model becomes a version of {model}."
        )
        return redirect("job", retraining.pk)
    start = replace(
        start_of_retraining(request, row),
        heading=f"Retrain trial {number} and register it",
        about=f"A new experiment trains these values, and its model becomes a version of {model}.",
        fields={"model": [model]},
        may_draft=False,
    )
    return show_start(request, start)


def _chosen_model(search: Job, chosen: str) -> str:
    """Return the model that was chosen; the proposed one if none was.

    Raises:
        Conflict: it is neither proposed nor a model of the project: it would be an unexpected new one.
    """
    proposed = registry.model_name_for(search)
    names = registry.model_names(search.project) if search.project is not None else []
    if chosen and chosen != proposed and chosen not in names:
        raise Conflict(f"The project has no model {chosen!r}; {proposed!r} is proposed now. Choose again.")
    return chosen or proposed


urls = [
    path("jobs/<int:job_id>/repeat", repeat, name="job_repeat"),
    path("jobs/<int:job_id>/narrow", narrow, name="job_narrow"),
    path("jobs/<int:job_id>/trials/<int:number>/register", register_trial, name="trial_register"),
]
