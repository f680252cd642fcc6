"""Registers workers, renews their leases, drains them, and marks them as gone or lost."""

from typing import Any

from django.db import transaction

from jobs import clock, hints
from jobs.actions.audit import audit
from jobs.actions.runs import reachability
from jobs.models import User, Worker

WORKER_LEASE_SECONDS = 15.0
LIVE = (Worker.State.UP, Worker.State.DRAINING)


def register(
    *,
    name: str,
    host: str,
    pid: int,
    pool: str,
    slots: int,
    devices: list[dict[str, Any]],
    info: dict[str, Any],
) -> Worker:
    """Create the row for a node that has just started. A restarted node is a new worker."""
    worker = Worker.objects.create(
        name=name,
        host=host,
        pid=pid,
        pool=pool,
        slots=slots,
        devices=devices,
        info=info,
        lease_until=clock.seconds_from_now(WORKER_LEASE_SECONDS),
    )
    hints.send("schedule", worker=worker.pk)
    return worker


def heartbeat(worker_id: int, *, devices: list[dict[str, Any]], info: dict[str, Any]) -> bool:
    """Renew the worker's lease. Return False if it was declared lost and must register again."""
    renewed = Worker.objects.filter(pk=worker_id, state__in=LIVE).update(
        lease_until=clock.seconds_from_now(WORKER_LEASE_SECONDS), devices=devices, info=info
    )
    return bool(renewed)


def mark_as_gone(worker_id: int) -> None:
    """Mark a worker as gone after an orderly shutdown."""
    Worker.objects.filter(pk=worker_id, state__in=LIVE).update(state=Worker.State.GONE)
    hints.send("schedule", worker=worker_id)


def mark_lost() -> None:
    """Mark the workers whose lease has expired as lost."""
    now = clock.now()
    expired = Worker.objects.filter(reachability.long_enough(now), state__in=LIVE, lease_until__lt=now)
    expired.update(state=Worker.State.LOST)


def _set_draining(worker: Worker, *, draining: bool, by: User) -> Worker:
    if draining:
        verb, was, to = "drain", Worker.State.UP, Worker.State.DRAINING
    else:
        verb, was, to = "enable", Worker.State.DRAINING, Worker.State.UP
    with transaction.atomic():
        if Worker.objects.filter(pk=worker.pk, state=was).update(state=to):
            audit.record(f"worker.{verb}", f"worker:{worker.pk}", by=by)
            hints.send("schedule", worker=worker.pk)
    worker.refresh_from_db()
    return worker


def drain(worker: Worker, *, by: User) -> Worker:
    """Drain the worker: it finishes its attempts and gets no new ones."""
    return _set_draining(worker, draining=True, by=by)


def enable(worker: Worker, *, by: User) -> Worker:
    """Enable a draining worker, so that it gets new attempts again."""
    return _set_draining(worker, draining=False, by=by)
