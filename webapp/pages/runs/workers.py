"""Shows pools, workers, slots and devices, and drains and enables workers."""

from dataclasses import dataclass
from http import HTTPStatus

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.actions.runs import preemption
from jobs.actions.runs import workers as actions
from jobs.models import PackageEnvironment, Worker
from jobs.queries.code import environments
from jobs.queries.runs import workers as query
from jobs.queries.runs.reservations import Week, week_for
from jobs.queries.runs.workers import Pool, WorkerView
from webapp.forms.runs.reservations import ReservationForm
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    action,
    crumbs,
    is_partial,
    notify,
    page,
    redirect_back,
    render_page,
)
from webapp.template_context import Context


@dataclass(frozen=True)
class WorkersPage(Context):
    """The pools with their workers, and the reservations of their slots."""

    pools: list[Pool]
    week: Week
    form: ReservationForm


@page
def workers(request: Request) -> HttpResponse:
    """Show the pools with their workers."""
    return workers_page(request)


def workers_page(
    request: Request, *, form: ReservationForm | None = None, status: int = HTTPStatus.OK
) -> HttpResponse:
    """Show the pools with their workers. A refused form is shown again with its entries and errors."""
    context = WorkersPage(
        pools=query.pools_with_workers(request.user),
        week=week_for(request.user),
        form=form or ReservationForm(),
    )
    return render_page(request, "runs/workers/list.html", context, partial="live", status=status)


@action
def pool_preemption(request: Request, pool: str) -> HttpResponse:
    """Switch preemption in a pool on or off."""
    on = request.POST.get("on") == "1"
    preemption.set_preemption(pool, on, by=request.user)
    notify(request, f"Preemption in pool {pool} is {'on' if on else 'off'}.")
    return redirect_back(request, "workers")


@dataclass(frozen=True)
class WorkerPage(Context):
    """One worker and the environments that are installed on it."""

    view: WorkerView
    environments: list[PackageEnvironment]
    environments_bytes: int
    crumbs: Crumbs


@page
def worker(request: Request, worker_id: int) -> HttpResponse:
    """Show one worker: its attempts, devices and library versions."""
    views = [view for pool in query.pools_with_workers(request.user) for view in pool.workers]
    view = next((worker_view for worker_view in views if worker_view.worker.pk == worker_id), None)
    if view is None:
        return _show_gone_worker(request, worker_id, views)
    built = list(environments.environments_on_worker(view.worker))
    context = WorkerPage(
        view=view,
        environments=built,
        environments_bytes=environments.total_bytes(built),
        crumbs=crumbs(("Workers", reverse("workers")), view.worker.name),
    )
    return render_page(request, "runs/workers/one.html", context, partial="live")


@dataclass(frozen=True)
class GoneWorkerPage(Context):
    """A worker that has left, and the one that replaces it under the same name."""

    worker: Worker
    restarted: Worker | None
    crumbs: Crumbs


def _show_gone_worker(request: Request, worker_id: int, others: list[query.WorkerView]) -> HttpResponse:
    """Show that a worker has left the installation. Its open page is reloaded and asks no more."""
    if is_partial(request):
        return HttpResponse(status=HTTPStatus.NO_CONTENT, headers={"HX-Refresh": "true"})
    row = query.get_worker(worker_id)
    context = GoneWorkerPage(
        worker=row,
        restarted=next((other.worker for other in others if other.worker.name == row.name), None),
        crumbs=crumbs(("Workers", reverse("workers")), row.name),
    )
    return render_page(request, "runs/workers/gone.html", context, status=HTTPStatus.NOT_FOUND)


@action
def worker_drain(request: Request, worker_id: int) -> HttpResponse:
    """Drain a worker: it finishes its attempts and accepts no new ones."""
    row = _find_worker(request, worker_id)
    actions.drain(row, by=request.user)
    undo = reverse("worker_enable", args=[row.pk])
    notify(request, f"{row.name} finishes its work and accepts no new work.", undo=undo)
    return redirect_back(request, "workers")


@action
def worker_enable(request: Request, worker_id: int) -> HttpResponse:
    """Enable a draining worker again."""
    row = _find_worker(request, worker_id)
    actions.enable(row, by=request.user)
    notify(request, f"{row.name} accepts work again.")
    return redirect_back(request, "workers")


def _find_worker(request: Request, worker_id: int) -> Worker:
    access.require_admin(request.user)
    return query.get_worker(worker_id)


urls = [
    path("workers", workers, name="workers"),
    path("workers/pools/<slug:pool>/preemption", pool_preemption, name="pool_preemption"),
    path("workers/<int:worker_id>", worker, name="worker"),
    path("workers/<int:worker_id>/drain", worker_drain, name="worker_drain"),
    path("workers/<int:worker_id>/enable", worker_enable, name="worker_enable"),
]
