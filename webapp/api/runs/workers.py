"""Operations on the workers that run jobs, and the queues of their pools."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field, StringConstraints

from jobs import access
from jobs.actions.runs import preemption, workers
from jobs.answers.runs.pool_queues import PoolQueueOut
from jobs.answers.runs.workers import WorkerOut
from jobs.models import Worker
from jobs.queries.runs import workers as queries
from jobs.queries.runs.pool_queues import pool_queues
from jobs.spec.sections.resources import POOL
from webapp.api.auth import actor, needs
from webapp.api.paging import Page, Paging, paginate_bulk
from webapp.api.shapes import Id, In, OneOf

router = Router()
PoolName = Annotated[str, StringConstraints(pattern=POOL)]


class WorkerFilter(Schema):
    """The list's filters."""

    pool: str | None = None
    state: Annotated[str, OneOf(Worker.State)] | None = Field(
        None, description="Without it, workers that are lost or gone are left out."
    )


@router.get("/workers", response=Page[WorkerOut], auth=needs("read", "admin"))
def list_workers(
    request: HttpRequest,  # noqa: ARG001
    paging: Query[Paging],
    filters: Query[WorkerFilter],
) -> Page[WorkerOut]:
    """List the workers."""
    rows = queries.workers_in_state(pool=filters.pool, state=filters.state)
    return paginate_bulk(Page[WorkerOut], rows, paging, queries.workers_out)


class PoolFilter(Schema):
    """The filter of queues."""

    pool: str | None = Field(
        None, pattern=POOL, description="Only this pool; it is returned also if nothing waits in it."
    )


@router.get("/queue/pools", response=Page[PoolQueueOut], auth=needs("read", "admin"))
def list_queues(
    request: HttpRequest,  # noqa: ARG001
    filters: Query[PoolFilter],
) -> Page[PoolQueueOut]:
    """Return the length and the age of the queue of each pool, in one page."""
    return Page[PoolQueueOut](items=pool_queues(filters.pool), next=None)


class PoolChange(In):
    """The setting of a pool to change."""

    preemption: bool


@router.patch("/queue/pools/{pool}", response=PoolQueueOut, auth=needs("admin"))
def change_pool(request: HttpRequest, pool: PoolName, body: PoolChange) -> PoolQueueOut:
    """Switch preemption in a pool on or off. For the installation's administrators.

    Where it is on, a waiting job of higher priority lets a running one of lower priority write a checkpoint
    and wait again. Runs that could not continue from a checkpoint are left alone.
    """
    preemption.set_preemption(pool, body.preemption, by=actor(request))
    return next(iter(pool_queues(pool)))


@router.get("/workers/{worker_id}", response=WorkerOut, auth=needs("read", "admin"))
def get_worker(request: HttpRequest, worker_id: Id) -> WorkerOut:  # noqa: ARG001
    """Return a worker."""
    return queries.worker_out(queries.get_worker(worker_id))


@router.post("/workers/{worker_id}/drain", response={202: WorkerOut}, auth=needs("admin"))
def drain_worker(request: HttpRequest, worker_id: Id) -> Status[WorkerOut]:
    """Let a worker finish its attempts and take no new ones."""
    access.require_admin(actor(request))
    return Status(202, queries.worker_out(workers.drain(queries.get_worker(worker_id), by=actor(request))))


@router.post("/workers/{worker_id}/enable", response={202: WorkerOut}, auth=needs("admin"))
def enable_worker(request: HttpRequest, worker_id: Id) -> Status[WorkerOut]:
    """Let a draining worker take new attempts again."""
    access.require_admin(actor(request))
    return Status(202, queries.worker_out(workers.enable(queries.get_worker(worker_id), by=actor(request))))
