"""One life of the node as a worker of the yard: from a row in the table of workers to its end.

A worker that was declared lost is never revived: the node begins the next life under a new id.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any

import redis
from django.conf import settings as django_settings

from jobs import queue
from jobs.actions import workers
from jobs.store import store
from workers.node.consumer import Consumer, consumer_argv
from workers.node.db_threads import Lane
from workers.node.disk import shortage
from workers.node.folders import NodeFolder
from workers.node.held_attempts import Roster
from workers.node.hints import Hint
from workers.node.inventory import Inventory, cores, memory_per_slot
from workers.node.kept import kept_warm, measured
from workers.node.ledger import DatabaseLedger
from workers.node.settings import NodeSettings
from workers.node.suggestion_process import Oracle
from workers.node.suggestions import Suggestions
from workers.node.warmth import Habits, Warmth
from workers.runner.environment import Environment
from workers.supervise.attempt import Workplace
from workers.supervise.devices import Devices
from workers.supervise.ledger import LedgerAway
from workers.supervise.pool import RunnerPool

log = logging.getLogger(__name__)


class Fixtures:
    """What outlives a life: folders, runners, devices."""

    def __init__(self, settings: NodeSettings, folder: NodeFolder, pool: RunnerPool, slots: int) -> None:
        self.settings = settings
        self.folder = folder
        self.pool = pool
        self.slots = slots
        self.inventory = Inventory()
        self.devices = Devices(self.inventory.accelerators)
        self.oracle = Oracle(folder.root / "oracle", patience=settings.timing.suggestion)
        self.lane = Lane("member")
        self.caches = settings.home / "compile-cache"
        self.warmth = Warmth(
            pool,
            Habits(folder.root / "habits.json", Environment(self.threads_per_slot)),
            self.devices,
            self.caches / "rehearsals",
            settings.standbys,
            settings.timing,
        )

    @property
    def threads_per_slot(self) -> int:
        """The cores of one slot."""
        return max(1, cores() // self.slots)

    def workplace(self, worker_id: int) -> Workplace:
        """Return what attempts need."""
        return Workplace(
            ledger=DatabaseLedger(worker_id, renew_patience=self.settings.timing.renew_patience),
            pool=self.pool,
            devices=self.devices,
            timing=self.settings.timing,
            attempts=self.folder.attempts,
            checkpoints=store().checkpoint_root,
            compile_caches=self.caches,
            threads_per_slot=self.threads_per_slot,
            memory_per_slot=memory_per_slot(self.slots),
        )

    def shortage(self) -> str | None:
        """Say if a disk is too full for new work."""
        folders = (self.folder.root, store().checkpoint_root)
        return shortage(folders, self.settings.least_free)

    async def register(self) -> int:
        """Enter the table of workers and return our id."""
        settings = self.settings
        worker = await self.lane.call(
            lambda: workers.register(
                name=self.folder.name,
                host=settings.host,
                pid=os.getpid(),
                pool=settings.pool,
                slots=self.slots,
                devices=self.inventory.devices(),
                info=self.inventory.info(),
            )
        )
        return worker.pk


class Membership:
    """The loops of one worker id."""

    def __init__(self, worker_id: int, fixtures: Fixtures) -> None:
        self.worker_id = worker_id
        self._fixtures = fixtures
        self._timing = fixtures.settings.timing
        self._poll_now, self._renew_now = asyncio.Event(), asyncio.Event()
        self.roster = Roster(fixtures.workplace(worker_id), room=fixtures.shortage)
        self.suggestions = Suggestions(fixtures.oracle)
        self.consumer = self._make_consumer()
        self.lost = asyncio.Event()

    def hear(self, hint: Hint) -> None:
        """A message came through: look now instead of at the next round."""
        match hint:
            case Hint("wake", int()):
                self._poll_now.set()
                self._renew_now.set()
            case Hint("suggest", int(job_id)) if not self.roster.leaving:
                self.suggestions.asked(job_id)
            case Hint("canary", str(token)):
                self.consumer.heard(token)

    async def run(self) -> None:
        """Work until cancelled. `lost` is set once the yard has given us up."""
        async with asyncio.TaskGroup() as loops:
            loops.create_task(self.consumer.run(), name="consumer")
            loops.create_task(self._repeat("poll", self.roster.take_up, self._timing.poll, self._poll_now))
            loops.create_task(self._repeat("renew", self.roster.renew, self._timing.renew, self._renew_now))
            loops.create_task(self._repeat("heartbeat", self._beat, self._timing.renew))
            loops.create_task(self._watch_leases())
            loops.create_task(self._fixtures.warmth.run(leaving=lambda: self.roster.leaving), name="warmth")

    async def leave(self) -> None:
        """Say goodbye; a database that is away finds out by our lease."""
        self.suggestions.close()
        try:
            await self._fixtures.lane.call(
                lambda: workers.leave(self.worker_id), patience=self._timing.renew_patience
            )
        except LedgerAway as error:
            log.warning("could not say goodbye: %s", error)

    async def _repeat(
        self,
        name: str,
        step: Callable[[], Awaitable[None]],
        seconds: float,
        sooner: asyncio.Event | None = None,
    ) -> None:
        """Do `step` every so many seconds, or once `sooner` is set; a database may be away meanwhile."""
        while True:
            try:
                await step()
            except LedgerAway as error:
                log.warning("%s: %s", name, error)
            await _sleep(seconds, sooner)

    async def _watch_leases(self) -> None:
        while True:
            await asyncio.sleep(self._timing.watch)
            self.roster.end_untrusted()

    async def _beat(self) -> None:
        devices, info = self._fixtures.inventory.devices(), self._info()
        warm = await asyncio.to_thread(measured, kept_warm(self._fixtures.pool))
        info["warm"] = [process.model_dump() for process in warm]
        known = await self._fixtures.lane.call(
            lambda: workers.heartbeat(self.worker_id, devices=devices, info=info),
            patience=self._timing.renew_patience,
        )
        if not known and not self.roster.leaving:
            self.lost.set()

    def _info(self) -> dict[str, Any]:
        info = self._fixtures.inventory.info()
        info["consumer"] = {
            "pid": self.consumer.pid,
            "proven": self.consumer.proven,
            "silent_seconds": round(self.consumer.silence, 1),
            "restarts": self.consumer.restarts,
        }
        info["runners"] = len(self._fixtures.pool.pids)
        if (sentence := self._fixtures.shortage()) is not None:
            info["no_space"] = sentence
        return info

    def _make_consumer(self) -> Consumer:
        queues = (queue.node_queue(self.worker_id), queue.pool_queue(self._fixtures.settings.pool))
        return Consumer(
            consumer_argv(f"worker-{self.worker_id}", queues),
            socket=self._fixtures.folder.socket,
            send_canary=self._send_canary,
            timing=self._timing,
        )

    def _send_canary(self, token: str) -> bool:
        client = redis.Redis.from_url(
            django_settings.TRAINYARD_REDIS_URL, socket_timeout=2, socket_connect_timeout=2
        )
        try:
            client.ping()
        except (redis.RedisError, OSError):
            return False
        finally:
            client.close()
        queue.canary(self.worker_id, token)
        return True


async def _sleep(seconds: float, sooner: asyncio.Event | None) -> None:
    if sooner is None:
        await asyncio.sleep(seconds)
        return
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(sooner.wait(), seconds)
    sooner.clear()
