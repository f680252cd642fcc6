"""Runs a registered worker's loops: polling, lease renewal, heartbeats, the message consumer.

A worker that was declared lost is never revived. The node registers again and gets a new worker id.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import redis
from django.conf import settings as django_settings

from jobs import queue
from jobs.actions.runs import workers
from jobs.queries import compatibility
from jobs.spec.checks.gpu_memory import DeviceState
from workers.node.consumer import Consumer, consumer_argv
from workers.node.held_attempts import HeldAttempts
from workers.node.hints import Hint
from workers.node.recovery import CannotRecover, RecoveryWatch
from workers.node.resources import NodeResources
from workers.node.suggestions import Suggestions
from workers.node.warm_processes import WarmMemory, list_warm_processes
from workers.supervise.attempt_repository import DatabaseUnavailable
from workers.supervise.backoff import Backoff

log = logging.getLogger(__name__)

COMPARE_SECONDS = 15.0


class Membership:
    """One worker id and its loops. `lost` is set once the scheduler has declared the worker lost."""

    def __init__(self, worker_id: int, resources: NodeResources) -> None:
        self.worker_id = worker_id
        self._resources = resources
        self._timing = resources.settings.timing
        self._poll_now, self._renew_now = asyncio.Event(), asyncio.Event()
        if resources.gpus is not None:
            resources.gpus.write = self._heartbeat
        self.attempts = HeldAttempts(resources.node_context(worker_id), disk_shortage=resources.why_no_work)
        self.suggestions = Suggestions(resources.suggestion_process)
        queues = (queue.node_queue(worker_id), queue.pool_queue(resources.settings.pool))
        self.consumer = Consumer(
            consumer_argv(f"worker-{worker_id}", queues),
            socket=resources.folder.socket,
            send_canary=self._send_canary,
            timing=self._timing,
        )
        self._warm_memory = WarmMemory()
        self.lost = asyncio.Event()
        self._recovery = RecoveryWatch(self._timing)
        self.lease_seconds = self._timing.lease
        self._failure: Exception | None = None
        self.refused = asyncio.Event()
        self.incompatible: str | None = None
        """Why this program must not use the database any more; `refused` is then set."""

    @property
    def seconds_unconfirmed(self) -> float:
        """Seconds since the database confirmed the worker, or since its registration."""
        return self._recovery.seconds_silent

    @property
    def slots(self) -> int:
        """How many attempts of one slot it may run at the same time."""
        return self._resources.slots

    @property
    def no_room(self) -> str | None:
        """Why the disk has no room for new work; None if it has."""
        return self._resources.no_room()

    @property
    def refusal(self) -> str | None:
        """Why the devices take no work; None if they do."""
        return self._resources.inventory.refusal

    @property
    def devices(self) -> Sequence[DeviceState]:
        """The devices as they were last read. The driver is not asked."""
        gpus = self._resources.inventory.gpus
        return () if gpus is None else gpus.states()

    @property
    def is_busy(self) -> bool:
        """Return whether an attempt runs, or its end is still being written."""
        return bool(self.attempts.attempt_ids)

    def handle_hint(self, hint: Hint) -> None:
        """React to a hint at once instead of at the next poll."""
        match hint:
            case Hint("wake", int()):
                # The hint means a new attempt, or a changed desired state, which a renewal returns.
                self._poll_now.set()
                self._renew_now.set()
            case Hint("suggest", int(job_id)) if not self.attempts.draining:
                self.suggestions.request(job_id)
            case Hint("canary", str(token)):
                self.consumer.canary_received(token)

    async def run(self) -> None:
        """Run all loops until cancelled.

        Raises:
            CannotRecover: the database answers other processes, but not this one.
        """
        try:
            await self._run_loops()
        except* CannotRecover as group:
            self._failure = group.exceptions[0]
        if self._failure is not None:
            raise self._failure

    async def _run_loops(self) -> None:
        async with asyncio.TaskGroup() as loops:
            loops.create_task(self.consumer.run(), name="consumer")
            for step, seconds, wake in (
                (self.attempts.claim_assigned, self._timing.poll, self._poll_now),
                (self.attempts.renew, self._timing.renew, self._renew_now),
                (self._heartbeat, self._timing.renew, asyncio.Event()),
                (self._compare, COMPARE_SECONDS, asyncio.Event()),
            ):
                backoff = Backoff(self._timing.retry_first, min(self._timing.retry_limit, seconds))
                loops.create_task(repeat(step, seconds, wake, backoff))
            loops.create_task(self._watch_leases())
            loops.create_task(self._recovery.run())
            loops.create_task(
                self._resources.standby_manager.run(draining=lambda: self.attempts.draining),
                name="standby_manager",
            )

    async def leave(self) -> None:
        """Take nothing new from now on, before the runs are asked to yield: their work must not come back."""
        self.attempts.draining = True
        try:
            await self.attempts.claim_assigned()
        except DatabaseUnavailable as error:
            log.warning("the worker could not be marked as draining yet: %s", error)

    async def deregister(self) -> None:
        """Record that the worker is gone. If that fails, its lease expires."""
        try:
            await self._resources.database.call(
                lambda: workers.mark_as_gone(self.worker_id, process=self._resources.process),
                timeout=self._timing.renew_patience,
            )
        except DatabaseUnavailable as error:
            log.warning("the worker could not deregister: %s", error)

    def close(self) -> None:
        """End the threads of this worker id, so that their connections to the database are closed."""
        self.attempts.close()
        self.suggestions.close()

    async def _watch_leases(self) -> None:
        # A loop of its own, without database calls: a slow renewal must not delay the suspension of a run
        # whose lease has expired.
        while True:
            await asyncio.sleep(self._timing.watch)
            self.attempts.check_leases()

    async def _heartbeat(self) -> None:
        if self._resources.gpus is not None:
            await self._resources.gpus.read()
        devices, info = self._resources.inventory.devices(), self._info()
        warm = await asyncio.to_thread(
            self._warm_memory.with_memory, list_warm_processes(self._resources.pool)
        )
        info["warm"] = [process.model_dump() for process in warm]
        registered = await self._resources.database.call(
            lambda: workers.heartbeat(
                self.worker_id, devices=devices, info=info, process=self._resources.process
            ),
            timeout=self._timing.renew_patience,
        )
        self._recovery.succeeded()
        # A drain ends with `deregister`, after which the row no longer counts as registered.
        if not registered and not self.attempts.draining:
            self.lost.set()

    async def _compare(self) -> None:
        """Compare program, database and store again: an upgrade may have forgotten this worker."""
        self.incompatible = await self._resources.database.call(compatibility.problem)
        if self.incompatible is not None:
            self.refused.set()
            return
        await self._resources.store_owner.ask()

    def _info(self) -> dict[str, Any]:
        info = self._resources.info()
        info["consumer"] = {
            "pid": self.consumer.pid,
            "proven": self.consumer.proven,
            "silent_seconds": round(self.consumer.seconds_silent, 1),
            "restarts": self.consumer.restarts,
        }
        info["runners"] = len(self._resources.pool.pids)
        info["event_lag_seconds"] = round(self.attempts.event_lag(), 1)
        if (sentence := self._resources.no_room()) is not None:
            info["no_space"] = sentence
        return info

    def _send_canary(self, token: str) -> bool:
        # `queue.send_canary` hides that the broker is down, so a connection of its own tests it first.
        client = redis.Redis.from_url(
            django_settings.TRAINYARD_REDIS_URL, socket_timeout=2, socket_connect_timeout=2
        )
        try:
            client.ping()
        except (redis.RedisError, OSError):
            return False
        finally:
            client.close()
        queue.send_canary(self.worker_id, token)
        return True


async def repeat(
    step: Callable[[], Awaitable[None]], seconds: float, wake: asyncio.Event, backoff: Backoff
) -> None:
    """Call `step` every `seconds`, and at once when `wake` is set. An unavailable database is only logged.

    Args:
        step: the function to call.
        seconds: the pause after a call that succeeded.
        wake: ends the pause.
        backoff: the pauses after calls that failed.
    """
    while True:
        pause = seconds
        try:
            await step()
            backoff.reset()
        except DatabaseUnavailable as error:
            log.warning("%s: %s", step.__name__, error)
            # A renewal that timed out has used up most of the lease: a whole interval more would lose it.
            pause = backoff.next()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(wake.wait(), pause)
        # Cleared before the step, not after it: a hint that arrives during a step must cause another one.
        wake.clear()
