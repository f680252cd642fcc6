"""The nodes that run jobs: what they have, what they do, and taking them out of use."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.responses import Status

from jobs import access
from jobs.actions import workers
from jobs.contracts.warm_processes import Warm
from jobs.models import Worker
from jobs.queries import workers as queries
from webapp.api.auth import actor, needs
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import Id, Json, OneOf, Time

router = Router()


class WarmOut(Schema):
    """A process that a worker keeps warm ahead of need: a fork server, or a standby runner."""

    kind: str
    state: str
    environment: str
    devices: str | None
    pid: int
    since: Time
    memory_bytes: int


class WorkerOut(Schema):
    """A worker with its slots and devices."""

    id: int
    name: str
    host: str
    pool: str
    state: str
    slots: int
    slots_busy: int
    devices: list[Any]
    warm: list[WarmOut]
    info: Json
    started: Time
    seen_until: Time


class WorkerFilter(Schema):
    """`?pool=&state=`; workers that are gone are listed only when asked for."""

    pool: str | None = None
    state: Annotated[str, OneOf(Worker.State)] | None = None


def _shown(worker: Worker) -> Json:
    return {
        "id": worker.pk,
        "name": worker.name,
        "host": worker.host,
        "pool": worker.pool,
        "state": worker.state,
        "slots": worker.slots,
        "slots_busy": queries.slots_busy(worker),
        "devices": worker.devices,
        "warm": [_warm(process) for process in queries.kept_warm(worker)],
        "info": {name: fact for name, fact in worker.info.items() if name != "warm"},
        "started": worker.started,
        "seen_until": worker.lease_until,
    }


def _warm(process: Warm) -> Json:
    return process.model_dump() | {"environment": process.environment, "since": process.started}


@router.get("/workers", response=Page[WorkerOut], auth=needs("read", "admin"))
def list_workers(
    request: HttpRequest,  # noqa: ARG001
    paging: Query[Paging],
    wanted: Query[WorkerFilter],
) -> Page[Json]:
    """List the workers; everyone may see what there is to run on."""
    return cut(queries.listed(pool=wanted.pool, state=wanted.state), paging, _shown)


@router.get("/workers/{worker_id}", response=WorkerOut, auth=needs("read", "admin"))
def get_worker(request: HttpRequest, worker_id: Id) -> Json:  # noqa: ARG001
    """Return one worker."""
    return _shown(queries.get(worker_id))


@router.post("/workers/{worker_id}/drain", response={202: WorkerOut}, auth=needs("admin"))
def drain(request: HttpRequest, worker_id: Id) -> Status[Any]:
    """Let a worker finish what it runs and take nothing new."""
    access.require_admin(actor(request))
    return Status(202, _shown(workers.drain(queries.get(worker_id), by=actor(request))))


@router.post("/workers/{worker_id}/enable", response={202: WorkerOut}, auth=needs("admin"))
def enable(request: HttpRequest, worker_id: Id) -> Status[Any]:
    """Let a draining worker take work again."""
    access.require_admin(actor(request))
    return Status(202, _shown(workers.enable(queries.get(worker_id), by=actor(request))))
