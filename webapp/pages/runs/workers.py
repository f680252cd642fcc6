"""Shows pools, workers, slots and devices, and drains and enables workers."""

from http import HTTPStatus

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.actions.runs import workers as actions
from jobs.models import Worker
from jobs.queries.code import environments
from jobs.queries.runs import workers as query
from webapp.pages.shortcuts import Request, action, crumbs, is_partial, notify, page, redirect_back, render


@page
def workers(request: Request) -> HttpResponse:
    """Show the pools with their workers."""
    return render(
        request, "runs/workers/list.html", {"pools": query.pools_with_workers(request.user)}, partial="live"
    )


@page
def worker(request: Request, worker_id: int) -> HttpResponse:
    """Show one worker: its attempts, devices and library versions."""
    views = [view for pool in query.pools_with_workers(request.user) for view in pool.workers]
    view = next((each for each in views if each.worker.pk == worker_id), None)
    if view is None:
        return _gone(request, worker_id, views)
    built = list(environments.environments_on_worker(view.worker))
    context = {
        "view": view,
        "environments": built,
        "environments_bytes": environments.total_bytes(built),
        "crumbs": crumbs(("Workers", reverse("workers")), view.worker.name),
    }
    return render(request, "runs/workers/one.html", context, partial="live")


def _gone(request: Request, worker_id: int, others: list[query.WorkerView]) -> HttpResponse:
    """Show that a worker has left the installation; an open page of it is reloaded and asks no more."""
    if is_partial(request):
        return HttpResponse(status=HTTPStatus.NO_CONTENT, headers={"HX-Refresh": "true"})
    row = query.get_worker(worker_id)
    context = {
        "worker": row,
        "restarted": next((each.worker for each in others if each.worker.name == row.name), None),
        "crumbs": crumbs(("Workers", reverse("workers")), row.name),
    }
    return render(request, "runs/workers/gone.html", context, status=HTTPStatus.NOT_FOUND)


@action
def worker_drain(request: Request, worker_id: int) -> HttpResponse:
    """Drain a worker: it finishes its attempts and accepts no new ones."""
    row = _worker(request, worker_id)
    actions.drain(row, by=request.user)
    undo = reverse("worker_enable", args=[row.pk])
    notify(request, f"{row.name} finishes its work and accepts no new work.", undo=undo)
    return redirect_back(request, "workers")


@action
def worker_enable(request: Request, worker_id: int) -> HttpResponse:
    """Enable a draining worker again."""
    row = _worker(request, worker_id)
    actions.enable(row, by=request.user)
    notify(request, f"{row.name} accepts work again.")
    return redirect_back(request, "workers")


def _worker(request: Request, worker_id: int) -> Worker:
    access.require_admin(request.user)
    return query.get_worker(worker_id)


urls = [
    path("workers", workers, name="workers"),
    path("workers/<int:worker_id>", worker, name="worker"),
    path("workers/<int:worker_id>/drain", worker_drain, name="worker_drain"),
    path("workers/<int:worker_id>/enable", worker_enable, name="worker_enable"),
]
