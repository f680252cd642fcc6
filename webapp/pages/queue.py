"""The queue: what waits, in which order, and why."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions import control
from jobs.queries import queue as query
from webapp.forms.queue import ChangeForm
from webapp.pages.shortcuts import Request, action, go_back, page, render, say


@page
def queue(request: Request) -> HttpResponse:
    """List what waits and what holds slots."""
    context = {"waiting": query.waiting(request.user), "holding": query.holding(request.user)}
    return render(request, "queue.html", context, partial="live")


@action
def change(request: Request, job_id: int) -> HttpResponse:
    """Give a job another priority or pool."""
    job = access.get_job(request.user, job_id, Action.WRITE)
    wanted = ChangeForm.read(request.POST)
    before = job.priority
    control.change(job, by=request.user, priority=wanted.priority, pool=wanted.pool)
    say(request, f"Job {job.pk}: priority {before} → {job.priority}, pool {job.pool}.")
    return go_back(request, "queue")


urls = [
    path("queue", queue, name="queue"),
    path("queue/<int:job_id>/change", change, name="queue_change"),
]
