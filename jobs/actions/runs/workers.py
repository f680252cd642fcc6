"""Registers workers, renews their leases, drains them, and marks them as gone or lost."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from jobs import clock, hints
from jobs.actions.audit import audit
from jobs.actions.runs import reachability
from jobs.models import User, Worker

WORKER_LEASE_SECONDS = 15.0
LIVE = (Worker.State.UP, Worker.State.DRAINING)


class NameTaken(Exception):
    """A live worker has the name; `lease_until` shows whether it lives: it is renewed every few seconds."""

    def __init__(self, row: Worker) -> None:
        super().__init__(
            f"A worker named {row.name!r} already runs on {row.host} (process {row.pid}, pool {row.pool}). "
            "Stop that one, or choose another --name."
        )
        self.lease_until = row.lease_until


def register(
    *,
    name: str,
    host: str,
    pid: int,
    pool: str,
    slots: int,
    devices: list[dict[str, Any]],
    info: dict[str, Any],
    labels: Mapping[str, str] = MappingProxyType({}),
    process: str = "",
) -> Worker:
    """Create the row for a node that has just started. A restarted node is a new worker.

    Args:
        name: unique among live workers.
        host: the machine's name.
        pid: the node's process id.
        pool: the pool whose jobs it runs.
        slots: how many attempts of one slot may run at the same time.
        devices: see the column.
        info: see the column.
        labels: jobs may ask for them.
        process: random, the same in all calls of a process: a repeated call finds its own row.

    Raises:
        NameTaken: another worker has the name, and its lease is valid.
    """
    fields = {
        "host": host,
        "pid": pid,
        "pool": pool,
        "labels": dict(labels),
        "slots": slots,
        "devices": devices,
        "info": info,
        "lease_until": clock.seconds_from_now(WORKER_LEASE_SECONDS),
    }
    holders = Worker.objects.filter(name=name, state__in=LIVE)
    # An earlier call of this process may have succeeded without its answer.
    if process and holders.filter(process=process).update(**fields):
        return holders.get(process=process)
    _mark_lost(holders)
    try:
        with transaction.atomic():
            worker = Worker.objects.create(name=name, process=process, **fields)
    # A constraint allows one live worker of a name.
    except IntegrityError:
        holder = holders.first()
        if holder is None:
            raise
        raise NameTaken(holder) from None
    hints.send("schedule", worker=worker.pk)
    return worker


def heartbeat(
    worker_id: int, *, devices: list[dict[str, Any]], info: dict[str, Any], process: str = ""
) -> bool:
    """Renew the worker's lease. Return False if it must register again.

    It was declared lost, or a restored database has given its key to another process.
    """
    renewed = Worker.objects.filter(pk=worker_id, process=process, state__in=LIVE).update(
        lease_until=clock.seconds_from_now(WORKER_LEASE_SECONDS), devices=devices, info=info
    )
    return bool(renewed)


def mark_as_gone(worker_id: int, *, process: str = "") -> None:
    """Mark a worker as gone after an orderly shutdown."""
    Worker.objects.filter(pk=worker_id, process=process, state__in=LIVE).update(state=Worker.State.GONE)
    hints.send("schedule", worker=worker_id)


def mark_lost() -> None:
    """Mark the workers whose lease has expired as lost."""
    _mark_lost(Worker.objects.filter(state__in=LIVE))


def _mark_lost(rows: QuerySet[Worker]) -> None:
    now = clock.now()
    rows.filter(reachability.long_enough(now), lease_until__lt=now).update(state=Worker.State.LOST)


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
