"""Shows the queue in order, with the reason why each job waits, and changes priorities and pools."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.runs import control
from jobs.queries.experiments.plan import resource_warnings
from jobs.queries.runs import queue as query
from webapp.forms.runs.queue import ChangeForm
from webapp.pages.shortcuts import Request, action, notify, page, redirect_back, render


@page
def queue(request: Request) -> HttpResponse:
    """List the waiting jobs and those that hold slots."""
    context = {"waiting": query.waiting_jobs(request.user), "holding": query.active_jobs(request.user)}
    return render(request, "runs/queue.html", context, partial="live")


@action
def change(request: Request, job_id: int) -> HttpResponse:
    """Change the priority or the pool of a job."""
    job = access.get_job(request.user, job_id, Action.WRITE)
    wanted = ChangeForm.read(request.POST)
    before = job.priority
    changed = control.change(job, by=request.user, priority=wanted.priority, pool=wanted.pool)
    notify(request, f"Job {job.pk}: priority {before} → {job.priority}, pool {job.pool}.")
    for problem in resource_warnings(changed):
        notify(request, f"Job {job.pk}: {problem.message}.", level="warning")
    return redirect_back(request, "queue")


urls = [
    path("queue", queue, name="queue"),
    path("queue/<int:job_id>/change", change, name="queue_change"),
]
