"""Starts a search's next steps: its best trials again, a smaller range, or a version."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import follow_up
from jobs.actions.search import trials
from jobs.errors import Conflict
from jobs.models import Job
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
    model = _chosen_model(row.job, request.POST.get("model", ""))
    retraining = trials.retrain(row, by=request.user, register_as=model)
    notify(request, f"Job {retraining.pk} retrains trial {number}; its model becomes a version of {model}.")
    return redirect("job", retraining.pk)


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
