"""Shows the queue in order, with the reason why each job waits, and changes priorities and pools."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.runs import control
from jobs.queries.experiments.plan import resource_warnings
from jobs.queries.runs import queue as query
from jobs.queries.runs.queue import Entry
from jobs.queries.runs.shares import PoolShares, shares_of_pools
from webapp.forms.runs.queue import ChangeForm
from webapp.pages.shortcuts import Request, action, notify, page, redirect_back, render_page
from webapp.scope import scope_of
from webapp.template_context import Context


@dataclass(frozen=True)
class QueuePage(Context):
    """The waiting jobs, those that hold slots, and what people use of the pools."""

    waiting: list[Entry]
    holding: list[Entry]
    pools: list[PoolShares]


@page
def queue(request: Request) -> HttpResponse:
    """List the waiting jobs and those that hold slots."""
    scope = scope_of(request, request.user)
    # The places stay those in the whole queue. Jobs that the user may not see are in no chosen project.
    waiting, holding = (
        [entry for entry in entries if scope.has(entry.job.project_id if entry.job else None)]
        for entries in (query.waiting_jobs(request.user), query.active_jobs(request.user))
    )
    context = QueuePage(
        waiting=waiting,
        holding=holding,
        pools=shares_of_pools(request.user),
    )
    return render_page(request, "runs/queue.html", context, partial="live")


@action
def change(request: Request, job_id: int) -> HttpResponse:
    """Change a job's priority or pool."""
    job = access.get_job(request.user, job_id, Action.WRITE)
    changes = ChangeForm.read(request.POST)
    before = job.priority
    changed = control.change(job, by=request.user, priority=changes.priority, pool=changes.pool)
    notify(request, f"Job {job.pk}: priority {before} → {job.priority}, pool {job.pool}.")
    for problem in resource_warnings(changed):
        notify(request, f"Job {job.pk}: {problem.message}.", level="warning")
    return redirect_back(request, "queue")


urls = [
    path("queue", queue, name="queue"),
    path("queue/<int:job_id>/change", change, name="queue_change"),
]
