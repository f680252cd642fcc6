"""Runs the scheduler's loop. Several schedulers may run; only the holder of the lease acts."""

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from jobs import hints, lease_clock
from jobs.actions import leases, own_installation, totals
from jobs.actions.audit import audit
from jobs.actions.data import datasets, resumable_uploads
from jobs.actions.registry import promotions, traffic
from jobs.actions.runs import attempt_end, pipeline, reachability, schedule, time_limits, workers
from jobs.actions.storage import checkpoint_copies, collection, retention
from jobs.fetching.launcher import Launcher
from jobs.monitoring.scheduler import SchedulerState
from jobs.queries import compatibility
from jobs.queries.runs.health import SCHEDULER_LEASE

log = logging.getLogger(__name__)

LEASE_SECONDS = 10.0
FRESH_SECONDS = 1.0
"""Within this time, a lease need not be renewed again."""
IDLE_SECONDS = 0.5
SWEEP_SECONDS = 2.0
PRESENCE_SECONDS = 2.0
RETENTION_SECONDS = 30.0
TRAFFIC_SECONDS = 60.0
BUNDLED_DATA_SECONDS = 3600.0
COLLECTION_SECONDS = 3600.0
FETCH_SECONDS = 1.0
COMPARE_SECONDS = 15.0
"""An upgrade may have forgotten this scheduler: it then ends."""
UPLOADS_SECONDS = 600.0
COUNT_SECONDS = 10.0
ANCHOR_SECONDS = 3600.0
"""Seconds between copies of the audit chain's head in the log. Rows after the last one may vanish unseen."""
COLLECTION_DELAY = 120.0
"""Seconds after the start without a collection: other parts have more urgent work then."""


def hold_lease(holder: str) -> bool:
    """Acquire or renew the scheduler's lease; return whether `holder` has it."""
    return leases.hold(SCHEDULER_LEASE, holder, seconds=LEASE_SECONDS)


def tick() -> None:
    """Advance all jobs and assign work to free slots."""
    pipeline.advance_all()
    if schedule.place_jobs():
        pipeline.advance_all()


def sweep() -> None:
    """End workers, attempts, jobs and promotion requests whose time is over, and complete the audit log."""
    workers.mark_lost()
    attempt_end.reap()
    time_limits.end_overdue()
    promotions.expire_due()
    audit.append_waiting()


class Presence:
    """Records from a thread that the database can be reached.

    A pass over many jobs may take longer than what counts as a break.
    """

    def __init__(self) -> None:
        self._ended = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = Thread(target=self._run, name="presence", daemon=True)
        self._thread.start()

    def end(self, seconds: float) -> None:
        """Let the thread end, and wait for it."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self._ended.wait(PRESENCE_SECONDS):
            try:
                reachability.record()
            except (DatabaseError, InterfaceError) as error:
                log.debug("database unavailable: %s", error)
                connections.close_all()
        connections.close_all()


class HintListener:
    """Waits for a hint of the topic `schedule`, or for a timeout."""

    def __init__(self) -> None:
        self._pubsub: redis.client.PubSub | None = None

    def wait(self, seconds: float) -> None:
        """Return after the first hint or after `seconds`."""
        try:
            if self._pubsub is None:
                client = redis.Redis.from_url(settings.TRAINYARD_REDIS_URL, socket_connect_timeout=1)
                self._pubsub = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
                self._pubsub.subscribe(hints.channel_name("schedule"))
            deadline = time.monotonic() + seconds
            while (remaining := deadline - time.monotonic()) > 0:
                if self._pubsub.get_message(timeout=remaining) is not None:
                    self._drain()
                    return
        except (redis.RedisError, OSError) as error:
            log.debug("no hints: %s", error)
            # Subscribe again at the next call. Sleep meanwhile: without a broker the loop must still idle.
            self._pubsub = None
            time.sleep(seconds)

    def _drain(self) -> None:
        # One pass serves all hints that have already arrived.
        while self._pubsub is not None and self._pubsub.get_message(timeout=0) is not None:
            pass


class Every:
    """Calls a function at most once every `seconds`, and not in the `first` seconds."""

    def __init__(self, seconds: float, function: Callable[[], object], *, first: float = 0.0) -> None:
        self.seconds, self.function, self.due = seconds, function, time.monotonic() + first

    def __call__(self) -> None:
        """Call the function if it is due. If the store or the disk fails, it is called again later."""
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + self.seconds
            try:
                self.function()
            except OSError:
                log.exception("%s failed", getattr(self.function, "__qualname__", self.function))


def run(stop: Event, state: SchedulerState | None = None) -> None:
    """Schedule until `stop` is set. If the database is unavailable, wait and retry.

    Args:
        stop: ends the loop.
        state: gets the facts about the loop, for probes and metrics.

    Raises:
        Incompatible: the database belongs to another version of the program.
        ForeignInstallation: the home or its key belong to another installation than the database.
    """
    presence = Presence()
    try:
        _schedule(stop, presence, state or SchedulerState())
    finally:
        presence.end(5)


def _schedule(stop: Event, presence: Presence, state: SchedulerState) -> None:
    holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    listener = HintListener()
    collecting = collection.Background(stop)
    erasing = collection.Background(stop, checkpoint_copies.erase_removed, name="removal of checkpoints")
    fetching = Launcher()
    periodic = [
        Every(SWEEP_SECONDS, sweep),
        Every(RETENTION_SECONDS, retention.remove_superfluous),
        Every(RETENTION_SECONDS, erasing),
        Every(TRAFFIC_SECONDS, traffic.fold_intervals),
        Every(BUNDLED_DATA_SECONDS, datasets.ensure_bundled),
        Every(ANCHOR_SECONDS, audit.log_anchor),
        Every(UPLOADS_SECONDS, resumable_uploads.collect, first=COLLECTION_DELAY),
        Every(COLLECTION_SECONDS, collecting, first=COLLECTION_DELAY),
        Every(FETCH_SECONDS, fetching),
        Every(COUNT_SECONDS, totals.count_ended_attempts),
    ]
    compare = Every(COMPARE_SECONDS, compatibility.require, first=COMPARE_SECONDS)
    follow_key = Every(COMPARE_SECONDS, own_installation.follow_key, first=COMPARE_SECONDS)
    log.info("scheduler %s started", holder)
    is_own = False
    while not stop.is_set():
        state.turn()
        try:
            if not is_own:
                own_installation.require_own_installation(signs=True)
                is_own = True
                # Only now: it writes to the database.
                presence.start()
            compare()
            follow_key()
            held_since = lease_clock.now()
            if is_leader := hold_lease(holder):
                for task in periodic:
                    task()
                # A task may have taken longer than the lease.
                if lease_clock.now() - held_since < FRESH_SECONDS or hold_lease(holder):
                    tick()
            state.finish(is_leader=is_leader)
        # Django's InterfaceError, for example for a closed connection, is not a DatabaseError.
        except (DatabaseError, InterfaceError) as error:
            state.fail()
            log.warning("database unavailable: %s", error)
            # Outside of requests, Django does not replace a broken connection by itself.
            close_old_connections()
        listener.wait(IDLE_SECONDS)
    collecting.join(5)
    with suppress(DatabaseError, InterfaceError):
        fetching.stop()
    with suppress(DatabaseError, InterfaceError):
        leases.release(SCHEDULER_LEASE, holder)
    log.info("scheduler %s ended", holder)
