"""Runs the scheduler's loop. Several schedulers may run; only the holder of the lease acts."""

import json
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from threading import Event

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections
from django.db.models import Q

from jobs import clock, hints
from jobs.actions import attempt_end, datasets, pipeline, promotions, retention, schedule
from jobs.models import Lease

log = logging.getLogger(__name__)

NAME = "scheduler"
LEASE_SECONDS = 10.0
IDLE_SECONDS = 0.5
SWEEP_SECONDS = 2.0
RETENTION_SECONDS = 30.0
CATALOGUE_SECONDS = 3600.0


def hold_lease(holder: str) -> bool:
    """Acquire or renew the scheduler's lease; return whether `holder` has it."""
    now, until = clock.now(), clock.seconds_from_now(LEASE_SECONDS)
    mine_or_free = Lease.objects.filter(name=NAME).filter(Q(holder=holder) | Q(until__lt=now))
    if mine_or_free.update(holder=holder, until=until):
        return True
    _, created = Lease.objects.get_or_create(name=NAME, defaults={"holder": holder, "until": until})
    return created


def release_lease(holder: str) -> None:
    """Release the lease, so that another scheduler need not wait until it expires."""
    Lease.objects.filter(name=NAME, holder=holder).delete()


def tick() -> None:
    """Advance all jobs and assign work to free slots."""
    pipeline.advance_all()
    if schedule.place():
        pipeline.advance_all()


def sweep() -> None:
    """End workers, attempts and promotion requests that have expired."""
    schedule.sweep_workers()
    attempt_end.reap()
    promotions.expire_due()


class Hints:
    """Waits for a hint or a timeout."""

    def __init__(self) -> None:
        self._pubsub: redis.client.PubSub | None = None

    def wait(self, seconds: float) -> None:
        """Return after the first hint or after `seconds`."""
        try:
            if self._pubsub is None:
                client = redis.Redis.from_url(settings.TRAINYARD_REDIS_URL, socket_connect_timeout=1)
                self._pubsub = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
                self._pubsub.subscribe(hints.channel("schedule"))
            deadline = time.monotonic() + seconds
            while (left := deadline - time.monotonic()) > 0:
                if self._pubsub.get_message(timeout=left) is not None:
                    self._drain()
                    return
        except (redis.RedisError, OSError) as error:
            log.debug("no hints: %s", error)
            self._pubsub = None
            time.sleep(seconds)

    def _drain(self) -> None:
        while self._pubsub is not None and self._pubsub.get_message(timeout=0) is not None:
            pass


class Every:
    """Calls a function at most once every `seconds`."""

    def __init__(self, seconds: float, function: Callable[[], object]) -> None:
        self.seconds, self.function, self.due = seconds, function, 0.0

    def __call__(self) -> None:
        """Call the function if it is due."""
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + self.seconds
            self.function()


def run(stop: Event) -> None:
    """Schedule until `stop` is set. If the database is unavailable, wait and retry."""
    holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    waiter = Hints()
    periodic = [
        Every(SWEEP_SECONDS, sweep),
        Every(RETENTION_SECONDS, retention.sweep),
        Every(CATALOGUE_SECONDS, datasets.ensure_bundled),
    ]
    log.info("scheduler %s started", holder)
    while not stop.is_set():
        try:
            if hold_lease(holder):
                for task in periodic:
                    task()
                if hold_lease(holder):  # a task may have taken longer than the lease
                    tick()
        except (DatabaseError, InterfaceError) as error:
            log.warning("database unavailable: %s", error)
            close_old_connections()
        waiter.wait(IDLE_SECONDS)
    with suppress(DatabaseError, InterfaceError):
        release_lease(holder)
    log.info(json.dumps({"scheduler": "ended"}))
