"""Starts a search's next steps: its best trials again, a smaller range, or a version."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import follow_up
from jobs.actions.search import trials
from jobs.queries.registry import registry
from webapp.pages.shortcuts import Request, action, notify, redirect


@action
def repeat(request: Request, job_id: int) -> HttpResponse:
    """Train the best two trials again with new seeds."""
    search = access.get_job(request.user, job_id, Action.WRITE)
    repetition = follow_up.repeat_best(search, by=request.user)
    notify(request, f"Job {repetition.pk} trains the best two trials of job {search.pk} again.")
    return redirect("job", repetition.pk)


@action
def narrow(request: Request, job_id: int) -> HttpResponse:
    """Search a smaller range around the best trial."""
    search = access.get_job(request.user, job_id, Action.WRITE)
    narrower = follow_up.queue_narrower_search(search, by=request.user)
    notify(request, f"Job {narrower.pk} searches a smaller range.")
    return redirect("job", narrower.pk)


@action
def register_trial(request: Request, job_id: int, number: int) -> HttpResponse:
    """Retrain a trial and register its model as a version."""
    row = access.get_trial(request.user, job_id, number, Action.WRITE)
    model = registry.model_name_for(row.job)
    retraining = trials.retrain(row, by=request.user, register_as=model)
    notify(request, f"Job {retraining.pk} retrains trial {number}; its model becomes a version of {model}.")
    return redirect("job", retraining.pk)


urls = [
    path("jobs/<int:job_id>/repeat", repeat, name="job_repeat"),
    path("jobs/<int:job_id>/narrow", narrow, name="job_narrow"),
    path("jobs/<int:job_id>/trials/<int:number>/register", register_trial, name="trial_register"),
]
