"""Runs a registered worker's loops: polling, lease renewal, heartbeats, the message consumer.

A worker that was declared lost is never revived. The node registers again and gets a new worker id.
"""

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import redis
from django.conf import settings as django_settings

from jobs import queue
from jobs.actions.runs import workers
from jobs.actions.runs.fence import Holder
from jobs.messages.sandbox import LevelState
from jobs.models import Worker
from jobs.queries import compatibility
from jobs.spec.checks.gpu_memory import DeviceState, places_of_gpu
from jobs.spec.sections.gpu import gpu_devices
from jobs.store import store
from workers.confinement.environments.environments import Environments
from workers.confinement.environments.folder import EnvironmentFolder
from workers.confinement.isolation.check import IsolationState
from workers.confinement.sandbox.gpus import SandboxGpu
from workers.node import sandbox_levels
from workers.node.attempt_repository import DatabaseAttemptRepository
from workers.node.checkpoints import NodeCheckpoints
from workers.node.consumer import Consumer, consumer_argv
from workers.node.db_threads import DatabaseThread
from workers.node.disk import disk_shortage
from workers.node.environment_records import EnvironmentRecords
from workers.node.gpu_inventory.node_gpus import NodeGpus
from workers.node.held_attempts import HeldAttempts
from workers.node.hints import Hint
from workers.node.inventory import Inventory, cores, memory_per_slot
from workers.node.lifetime import Lifetime
from workers.node.node_folder import NodeFolder
from workers.node.recovery import CannotRecover, RecoveryWatch
from workers.node.runner_isolation import COMPILE_CACHES, isolate
from workers.node.settings import NodeSettings
from workers.node.standby_manager import EnvironmentHistory, StandbyManager
from workers.node.store_owner import StoreOwner
from workers.node.suggestion_process import SuggestionProcess
from workers.node.suggestions import Suggestions
from workers.node.warm_processes import WarmMemory, list_warm_processes
from workers.runner.environment import Environment
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.memory import in_memory_bytes, row_memory
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.attempt.packages import Packages, build_limits
from workers.supervise.attempt_repository import DatabaseUnavailable
from workers.supervise.backoff import Backoff
from workers.supervise.pool.runner_pool import RunnerPool
from workers.supervise.pool.sandbox_gpus import SandboxGpus

log = logging.getLogger(__name__)

COMPARE_SECONDS = 15.0
ENVIRONMENTS = "environments"
"""The folder of the home with the packages of code."""


class NodeResources:
    """The resources on a node that outlive a worker id: folders, runners, devices.

    Call `isolate` before the first attempt, and `find_sandboxes` later: runs with user code wait for it.

    Args:
        settings: the node's.
        folder: the node's.
        pool: its runners.
        slots: how many attempts of one slot may run at the same time.
        inventory: reads the machine's devices and memory.
        lifetime: the limits of the node's life.
    """

    def __init__(
        self,
        settings: NodeSettings,
        folder: NodeFolder,
        pool: RunnerPool,
        slots: int,
        inventory: Inventory,
        lifetime: Lifetime,
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.name = folder.name
        """The worker's name, which another home's worker on this host may already have."""
        self.process = secrets.token_hex(16)
        self.lifetime = lifetime
        self.pool = pool
        self.slots = slots
        self.inventory = inventory
        self.isolation = IsolationState.shared("not checked yet")
        self.levels: tuple[LevelState, ...] | None = None
        """The levels of sandbox; None until they are found."""
        self.no_gpu_in_sandbox: tuple[str, ...] = ()
        """Why runs with user code get no GPU, and why not several; empty without GPUs."""
        gpus = inventory.accelerators.gpus
        self.devices = Devices({gpu.name: gpu.cuda_id for gpu in gpus}, places_of_gpu(slots, len(gpus)))
        self.gpus = None if inventory.gpus is None else NodeGpus(inventory.gpus, self.devices, pool)
        self.sandbox_gpus = SandboxGpus({gpu.cuda_id: SandboxGpu(gpu.uuid, gpu.minor) for gpu in gpus})
        self.suggestion_process = SuggestionProcess(
            folder.root / "suggestion-process", timeout=settings.timing.suggestion
        )
        # Not a thread of `DatabaseAttemptRepository`: heartbeats must not wait for the writes of attempts.
        self.database = DatabaseThread("member")
        self.store_owner = StoreOwner(self.database)
        self.caches = settings.home / COMPILE_CACHES
        self.checkpoints = NodeCheckpoints.of_store()
        environments = EnvironmentFolder(settings.home / ENVIRONMENTS)
        self.records = EnvironmentRecords(environments, DatabaseThread("packages"))
        self.environments = Environments(environments, self.records)
        if pool.sandboxes is not None:
            pool.sandboxes.environments = environments
        self.packages = (
            None
            if pool.sandboxes is None
            else Packages(
                self.environments,
                pool.sandboxes,
                build_limits(memory_per_slot(slots)),
                lambda: pool.isolation,
            )
        )
        self.standby_manager = StandbyManager(
            pool,
            EnvironmentHistory(folder.root / "habits.json", Environment(self.threads_per_slot)),
            self.devices,
            self.caches / "rehearsals",
            settings.standbys,
            settings.timing,
        )

    @property
    def threads_per_slot(self) -> int:
        return max(1, cores() // self.slots)

    def node_context(self, worker_id: int) -> NodeContext:
        """Return the resources that this worker's attempts share."""
        self.records.worker_id = worker_id
        return NodeContext(
            repository=DatabaseAttemptRepository(
                Holder(worker_id, self.process), renew_timeout=self.settings.timing.renew_patience
            ),
            pool=self.pool,
            devices=self.devices,
            timing=self.settings.timing,
            attempts=self.folder.attempts,
            checkpoints=store().checkpoint_root,
            compile_caches=self.caches,
            threads_per_slot=self.threads_per_slot,
            memory_per_slot=memory_per_slot(self.slots),
            no_gpu=self.inventory.accelerators.problem,
            gpu_models=gpu_devices(self.inventory.devices()),
            gpu_failed=self.inventory.gpu_failed,
            sandbox_gpus=self.sandbox_gpus,
            packages=self.packages,
            copies=self.checkpoints.channel,
            gpus=self.gpus,
        )

    def info(self) -> dict[str, Any]:
        """Return facts about the machine, with the memory for table rows in a run with one slot."""
        return {
            **self.inventory.info(),
            **self.lifetime.info(),
            **(
                {}
                if self.levels is None
                else {
                    "sandbox": [level.model_dump(mode="json") for level in self.levels],
                    "no_gpu_in_sandbox": self.no_gpu_in_sandbox,
                }
            ),
            "isolation": self.isolation._asdict(),
            "environments": self.records.place,
            "checkpoints": self.checkpoints.place,
            "row_memory_bytes": row_memory(memory_per_slot(self.slots), in_memory_bytes()),
        }

    def isolate(self) -> None:
        """Give runners their own users if this service may. It starts processes: call it in a thread."""
        self.pool.isolation, self.isolation = isolate(self.settings, self.folder)
        log.log(logging.INFO if self.pool.isolation else logging.WARNING, "%s", self.isolation.message)

    async def find_sandboxes(self) -> None:
        """Find the sandbox levels for user code. Runs without such code start meanwhile."""
        thread = ThreadPoolExecutor(1, "sandbox-levels", initializer=sandbox_levels.yield_to_others)
        try:
            self.levels = await asyncio.get_running_loop().run_in_executor(
                thread, sandbox_levels.find, self.settings, self.folder, self.pool.isolation
            )
        # Other runs need none, so an error here must not end the node.
        except Exception as error:
            log.exception("the sandboxes for code of users could not be found")
            self.levels = sandbox_levels.none_offered(f"{type(error).__name__}: {error}")
        finally:
            thread.shutdown(wait=False)
        self.no_gpu_in_sandbox = await asyncio.to_thread(self.sandbox_gpus.problems, self.levels)
        offered = [level.level for level in self.levels if level.offered]
        log.info("sandboxes for code of users: %s", ", ".join(offered) or "none")
        if self.pool.sandboxes is not None:
            self.pool.sandboxes.states.set_result(self.levels)

    def no_room(self) -> str | None:
        """Return an error sentence if a disk is too full for new work, or the store only read."""
        if self.store_owner.problem is not None:
            return self.store_owner.problem
        folders = (self.folder.root, store().checkpoint_root)
        return disk_shortage(folders, self.settings.min_free_bytes)

    def why_no_work(self) -> str | None:
        """Return an error sentence if no new work may start here."""
        return self.inventory.refusal or self.no_room()

    async def register(self) -> int:
        """Register as a new worker and return its id.

        Raises:
            Incompatible: the database belongs to another version of the program.
            NameTaken: a live worker has the name that the operator chose.
        """
        await self.database.call(compatibility.require)
        await self.store_owner.ask()
        if self.gpus is not None:
            await self.gpus.read()
        number = 1
        while True:
            try:
                return (await self.database.call(self._register)).pk
            except workers.NameTaken:
                if self.settings.name is not None:
                    raise
                number += 1
                self.name = f"{self.settings.host}-{number}"

    def _register(self) -> Worker:
        return workers.register(
            name=self.name,
            host=self.settings.host,
            pid=os.getpid(),
            pool=self.settings.pool,
            slots=self.slots,
            labels=self.settings.labels,
            devices=self.inventory.devices(),
            info=self.info(),
            process=self.process,
        )


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
