"""The node's process: one life after another until a signal ends it."""

import asyncio
import logging
import signal
from functools import partial

from jobs.actions import attempt_end
from workers.node import compilecache, hints
from workers.node.folders import NodeFolder, sweep_dead
from workers.node.inventory import Inventory, cores, memory_per_slot
from workers.node.membership import Fixtures, Membership
from workers.node.settings import NodeSettings
from workers.supervise.backoff import Backoff
from workers.supervise.endings import Ending
from workers.supervise.fork_servers import Nursery
from workers.supervise.ledger import LedgerAway
from workers.supervise.masking import Masker
from workers.supervise.pool import RunnerPool

log = logging.getLogger(__name__)

KILL_SECONDS = 5.0


class Node:
    """Owns the folder, the runners and the socket; lives as one worker after another."""

    def __init__(self, settings: NodeSettings, folder: NodeFolder, *, secrets: set[str]) -> None:
        slots = settings.slots or len(Inventory().accelerators) or cores()
        self._settings = settings
        self._timing = settings.timing
        self._folder = folder
        nursery = Nursery(folder.runners, settings.timing.idle_forkserver, settings.runner)
        self._pool = RunnerPool(
            folder=folder.runners,
            slots=slots,
            idle_seconds=settings.timing.idle_runner,
            idle_memory=memory_per_slot(slots),
            masker=Masker(secrets),
            module=settings.runner,
            nursery=nursery if settings.forks else None,
        )
        self._fixtures = Fixtures(settings, folder, self._pool, slots)
        self._member: Membership | None = None
        self._leaving, self._killed = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Work until SIGTERM or SIGINT; a second one does not wait for checkpoints."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        await self._clear_up()
        ears = await hints.listen(self._folder.socket, self._hear)
        housekeeping = asyncio.create_task(self._keep_house())
        try:
            while not self._leaving.is_set():
                await self._live_once()
        finally:
            housekeeping.cancel()
            ears.close()
            self._folder.socket.unlink(missing_ok=True)
            await self._pool.close()
            await self._fixtures.oracle.close()

    async def _live_once(self) -> None:
        worker_id = await self._register()
        if worker_id is None:
            return
        self._folder.sign(worker_id)
        log.info("worker %s (%s) is up with %s slots", worker_id, self._folder.name, self._fixtures.slots)
        self._member = member = Membership(worker_id, self._fixtures)
        living = asyncio.create_task(member.run())
        ends = [asyncio.create_task(event.wait()) for event in (self._leaving, member.lost)]
        try:
            await asyncio.wait([living, *ends], return_when=asyncio.FIRST_COMPLETED)
            if living.done():
                living.result()  # a loop of ours has raised: fall, be started anew, lose nothing
            if self._leaving.is_set():
                await self._drain(member)
            else:
                await self._be_lost(member)
        finally:
            for task in (living, *ends):
                task.cancel()
            await asyncio.wait([living, *ends])
            self._member = None

    async def _register(self) -> int | None:
        backoff = Backoff(self._timing.retry_first, self._timing.retry_limit)
        while not self._leaving.is_set():
            try:
                return await self._fixtures.register()
            except LedgerAway as error:
                log.warning("cannot register yet: %s", error)
                await asyncio.sleep(backoff.next())
        return None

    async def _drain(self, member: Membership) -> None:
        """Let every run write a checkpoint and give it back, so that it goes on elsewhere at once."""
        log.info("leaving; %d runs write a checkpoint", len(member.roster.held))
        member.roster.leave()
        quiet = asyncio.create_task(member.roster.wait(self._timing.grace + KILL_SECONDS))
        killed = asyncio.create_task(self._killed.wait())
        await asyncio.wait([quiet, killed], return_when=asyncio.FIRST_COMPLETED)
        killed.cancel()
        quiet.cancel()
        member.roster.end_all(Ending.drained())
        if not await member.roster.wait(KILL_SECONDS):
            member.roster.drop()
        await member.leave()

    async def _be_lost(self, member: Membership) -> None:
        """The yard gave us up, and others may run what we ran: end it all, then begin anew."""
        log.error("worker %s was declared lost; ending its runs and beginning anew", member.worker_id)
        member.roster.leaving = True
        member.roster.end_all(Ending.stale())
        if not await member.roster.wait(KILL_SECONDS):
            member.roster.drop()
        member.suggestions.close()

    def _hear(self, hint: hints.Hint) -> None:
        if self._member is not None:
            self._member.hear(hint)

    def _on_signal(self) -> None:
        (self._killed if self._leaving.is_set() else self._leaving).set()

    async def _clear_up(self) -> None:
        """End what dead nodes left; give their attempts back now instead of when their leases run out."""
        for dead in await asyncio.to_thread(sweep_dead, self._folder):
            try:
                await self._fixtures.lane.call(
                    partial(attempt_end.bury, dead.id, name=dead.name, pid=dead.pid)
                )
            except LedgerAway as error:
                log.warning("what worker %s held is left to the reaper: %s", dead.id, error)

    async def _keep_house(self) -> None:
        while True:
            try:
                await self._pool.sweep()
                await self._fixtures.oracle.end_if_idle(self._timing.idle_runner)
                await asyncio.to_thread(compilecache.bound, self._fixtures.caches, compilecache.limit())
            except Exception:
                log.exception("something could not be cleared up; it is tried again")
            await asyncio.sleep(min(self._timing.housekeeping, max(1.0, self._timing.idle_runner / 4)))


async def run_node(settings: NodeSettings, *, secrets: set[str]) -> None:
    """Take the node's folder and run. Raises `folders.NameTaken`."""
    if settings.name is not None:
        folder = NodeFolder.claim(settings.home, settings.name)
    else:
        folder = NodeFolder.claim_numbered(settings.home, settings.host)
    await Node(settings, folder, secrets=secrets).run()
