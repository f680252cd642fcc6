"""Runs the node: registers it as a worker and serves until a signal, or until it is declared lost."""

import asyncio
import contextlib
import logging
import os
import signal
from functools import partial

from jobs.actions.own_installation import require_own_installation
from jobs.actions.runs import attempt_end
from jobs.actions.runs.workers import NameTaken
from jobs.logged_errors import log_errors
from jobs.messages.worker_end import KILL_SECONDS
from jobs.queries.compatibility import Incompatible
from workers.confinement.sandbox import cgroups
from workers.node import accelerators, hints
from workers.node.draining import drain
from workers.node.gpu_inventory.claims import GpuClaims
from workers.node.inventory import Inventory, cores, memory_per_slot
from workers.node.lifetime import Lifetime
from workers.node.membership import Membership
from workers.node.node_folder import NodeFolder, clean_up_dead_nodes
from workers.node.resources import NodeResources
from workers.node.settings import NodeSettings
from workers.node.status import NodeStatus
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import DatabaseUnavailable
from workers.supervise.backoff import Backoff
from workers.supervise.pool.fork_servers import ForkServers
from workers.supervise.pool.runner_pool import RunnerPool
from workers.supervise.pool.sandboxes import Sandboxes, further_packages
from workers.system import compile_cache
from workers.system.secret_masking import SecretMasker

log = logging.getLogger(__name__)

NAME_SECONDS = 1.0
"""How often the worker that has the name is looked at."""


class Node:
    """Owns the node's folder, its runners and its hint socket. They outlive the worker ids of the node."""

    def __init__(self, settings: NodeSettings, folder: NodeFolder, *, secrets: set[str]) -> None:
        self._claims = GpuClaims()
        hardware = accelerators.find(settings.slots, os.environ, self._claims)
        if hardware.problem is not None:
            log.warning("%s", hardware.problem)
        slots = settings.slots or len(hardware.gpus) or cores()
        self._settings = settings
        self._timing = settings.timing
        self._folder = folder
        fork_servers = ForkServers(folder.runners, settings.timing.idle_forkserver, settings.runner)
        self._pool = RunnerPool(
            folder=folder.runners,
            slots=slots,
            idle_seconds=settings.timing.idle_runner,
            idle_memory=memory_per_slot(slots),
            masker=SecretMasker(secrets),
            module=settings.runner,
            fork_servers=fork_servers if settings.forks else None,
            sandboxes=Sandboxes(folder.attempts, readable=further_packages(settings.runner)),
        )
        self._lifetime = Lifetime(settings.idle_exit, settings.max_life, settings.timing)
        self._resources = NodeResources(
            settings, folder, self._pool, slots, Inventory(hardware), self._lifetime
        )
        self._membership: Membership | None = None
        self._draining, self._killed = asyncio.Event(), asyncio.Event()
        self._status = NodeStatus()

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT. A second Ctrl-C does not wait for checkpoints.

        Raises:
            Incompatible: the database belongs to another version of the program.
            ForeignInstallation: the home belongs to another installation than the database.
            BadStatusAddress: the address for probes is not valid, or in use.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal, number)
        ending = asyncio.create_task(self._end_by_itself())
        listener = self._status.listen(self._settings.status_address)
        try:
            await self._run()
        finally:
            ending.cancel()
            if listener is not None:
                listener.close()

    async def _run(self) -> None:
        if not await self._compare_installation():
            return
        # Before the node registers: a task must not start beside an orphan that holds its device.
        await self._clean_up_after_crashes()
        await asyncio.to_thread(self._resources.isolate)
        transport = await hints.listen(self._folder.socket, self._on_hint)
        housekeeping = asyncio.create_task(self._housekeeping())
        # Not before: a second and more would pass until the worker is registered.
        finding = asyncio.create_task(self._resources.find_sandboxes())
        try:
            while not self._draining.is_set():
                await self._run_as_worker()
        finally:
            housekeeping.cancel()
            finding.cancel()
            transport.close()
            self._folder.socket.unlink(missing_ok=True)
            await self._pool.close()
            if self._resources.packages is not None:
                self._resources.packages.close()
            await self._resources.suggestion_process.close()
            self._resources.store_owner.close()
            # Only now: the runners have released the GPUs' memory.
            self._claims.close()

    async def _compare_installation(self) -> bool:
        """Compare program and home with the database before anything is written. False: after a signal."""
        backoff = Backoff(self._timing.retry_first, self._timing.retry_limit)
        while not self._draining.is_set():
            try:
                await self._resources.database.call(partial(require_own_installation, signs=False))
                return True
            except DatabaseUnavailable as error:
                log.warning("the installation cannot be compared with the database yet: %s", error)
                await asyncio.sleep(backoff.next())
        return False

    async def _run_as_worker(self) -> None:
        worker_id = await self._register()
        if worker_id is None:
            return
        name = self._resources.name
        self._folder.write_worker_id(worker_id, name)
        log.info("worker %s (%s) is up with %s slots", worker_id, name, self._resources.slots)
        self._lifetime.begin_idle()
        self._membership = membership = Membership(worker_id, self._resources)
        self._status.membership = membership
        running = asyncio.create_task(membership.run())
        events = (self._draining, membership.lost, membership.refused)
        ends = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait([running, *ends], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                # A loop raised. The exception ends the node, and its service manager restarts it.
                running.result()
            if membership.incompatible is not None:
                # Nothing more is written to a database of another version: its runs end with their leases.
                raise Incompatible(membership.incompatible)
            if self._draining.is_set():
                await drain(membership, self._timing, self._killed)
            else:
                await self._stop_lost_worker(membership)
        finally:
            for task in (running, *ends):
                task.cancel()
            await asyncio.wait([running, *ends])
            membership.close()
            self._membership = self._status.membership = None

    async def _register(self) -> int | None:
        """Register as a new worker. A worker with the same name that does not live any more is waited for.

        Raises:
            NameTaken: the worker with the same name lives.
        """
        backoff = Backoff(self._timing.retry_first, self._timing.retry_limit)
        holder: NameTaken | None = None
        while not self._draining.is_set():
            try:
                return await self._resources.register()
            except DatabaseUnavailable as error:
                log.warning("cannot register yet: %s", error)
                await asyncio.sleep(backoff.next())
            except NameTaken as error:
                # Only a process that lives renews its lease. One that was killed has it for some seconds.
                if holder is not None and error.lease_until != holder.lease_until:
                    raise
                if holder is None:
                    log.warning("%s Waiting to see whether it still lives.", error)
                holder = error
                await asyncio.sleep(NAME_SECONDS)
        return None

    async def _end_by_itself(self) -> None:
        """Drain after a time without work, or at the end of the node's life."""
        await self._lifetime.wait(self._is_busy)
        log.info("%s The worker drains and ends.", self._lifetime.ending)
        self._draining.set()

    def _is_busy(self) -> bool:
        return self._membership is not None and self._membership.is_busy

    async def _stop_lost_worker(self, membership: Membership) -> None:
        """End all runs: other workers may already have been given them."""
        log.error("worker %s was declared lost; ending its runs and registering again", membership.worker_id)
        membership.attempts.draining = True  # claims nothing more under this id
        membership.attempts.end_all(AttemptEnd.stale())
        if not await membership.attempts.wait_until_empty(KILL_SECONDS):
            membership.attempts.abandon()

    def _on_hint(self, hint: hints.Hint) -> None:
        if self._membership is not None:
            self._membership.handle_hint(hint)

    def _on_signal(self, number: signal.Signals) -> None:
        # A manager may send SIGTERM to all processes of a service, and the supervisor of this one another.
        # Who cannot wait sends SIGKILL.
        if self._draining.is_set() and number == signal.SIGINT:
            self._killed.set()
        self._status.is_draining = True
        self._draining.set()

    async def _clean_up_after_crashes(self) -> None:
        """Kill orphaned runners that dead nodes left, and end their attempts before the leases expire."""
        for dead in await asyncio.to_thread(clean_up_dead_nodes, self._folder):
            try:
                await self._resources.database.call(
                    partial(attempt_end.declare_lost, dead.id, name=dead.name, pid=dead.pid)
                )
            except DatabaseUnavailable as error:
                log.warning("the attempts of worker %s are left to the reaper: %s", dead.id, error)

    async def _housekeeping(self) -> None:
        while True:
            # Housekeeping only frees resources, so an error in it must not end the node and its runs.
            with log_errors(log, "housekeeping failed; it is retried"):
                await self._keep_house()
            # Often enough that an idle runner lives at most a quarter longer than `idle_runner`.
            await asyncio.sleep(min(self._timing.housekeeping, max(1.0, self._timing.idle_runner / 4)))

    async def _keep_house(self) -> None:
        await self._pool.sweep()
        await self._resources.suggestion_process.end_if_idle(self._timing.idle_runner)
        await asyncio.to_thread(compile_cache.evict, self._resources.caches, compile_cache.limit_bytes())
        await asyncio.to_thread(_remove_left_groups)
        try:
            await self._resources.records.keep_house(self._resources.environments)
            await self._resources.checkpoints.sweep(self._resources.database)
        except DatabaseUnavailable as error:
            log.warning("%s", error)


def _remove_left_groups() -> None:
    """Remove the control groups for sandboxes whose worker was killed."""
    with contextlib.suppress(cgroups.NoCgroup):
        cgroups.remove_left(cgroups.delegated())


async def run_node(settings: NodeSettings, *, secrets: set[str]) -> None:
    """Claim the node's folder and run. Raises `WorkerNameInUse`."""
    if settings.name is not None:
        folder = NodeFolder.claim(settings.home, settings.name)
    else:
        folder = NodeFolder.claim_numbered(settings.home, settings.host)
    await Node(settings, folder, secrets=secrets).run()
