"""Holds the resources of a node that outlive a worker id, and registers the node with them."""

import asyncio
import logging
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jobs.actions.runs import workers
from jobs.actions.runs.fence import Holder
from jobs.messages.sandbox import LevelState
from jobs.models import Worker
from jobs.queries import compatibility
from jobs.spec.checks.gpu_memory import places_of_gpu
from jobs.spec.sections.gpu import gpu_devices
from jobs.store import store
from workers.confinement.environments.environments import Environments
from workers.confinement.environments.folder import EnvironmentFolder
from workers.confinement.isolation.check import IsolationState
from workers.confinement.sandbox.gpus import SandboxGpu
from workers.node import sandbox_levels
from workers.node.attempt_repository import DatabaseAttemptRepository
from workers.node.checkpoints import NodeCheckpoints
from workers.node.db_threads import DatabaseThread
from workers.node.disk import disk_shortage
from workers.node.environment_records import EnvironmentRecords
from workers.node.gpu_inventory.node_gpus import NodeGpus
from workers.node.inventory import Inventory, cores, memory_per_slot
from workers.node.lifetime import Lifetime
from workers.node.node_folder import NodeFolder
from workers.node.runner_isolation import COMPILE_CACHES, isolate
from workers.node.settings import NodeSettings
from workers.node.standby_manager import EnvironmentHistory, StandbyManager
from workers.node.store_owner import StoreOwner
from workers.node.suggestion_process import SuggestionProcess
from workers.runner.environment import Environment
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.memory import in_memory_bytes, row_memory
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.attempt.packages import Packages, build_limits
from workers.supervise.pool.runner_pool import RunnerPool
from workers.supervise.pool.sandbox_gpus import SandboxGpus

log = logging.getLogger(__name__)

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
        self.checkpoints = NodeCheckpoints.of_store()
        folder_of_environments = EnvironmentFolder(settings.home / ENVIRONMENTS)
        self.records = EnvironmentRecords(folder_of_environments, DatabaseThread("packages"))
        self.environments = Environments(folder_of_environments, self.records)
        if pool.sandboxes is not None:
            pool.sandboxes.environments = folder_of_environments
        self.packages = self._code_packages()
        self.caches = settings.home / COMPILE_CACHES
        self.standby_manager = self._new_standby_manager()

    def _code_packages(self) -> Packages | None:
        """Return the object that installs the packages of code; None without sandboxes."""
        if self.pool.sandboxes is None:
            return None
        limits = build_limits(memory_per_slot(self.slots))
        return Packages(self.environments, self.pool.sandboxes, limits, lambda: self.pool.isolation)

    def _new_standby_manager(self) -> StandbyManager:
        environment = Environment(self.threads_per_slot)
        return StandbyManager(
            self.pool,
            EnvironmentHistory(self.folder.root / "habits.json", environment),
            self.devices,
            self.caches / "rehearsals",
            self.settings.standbys,
            self.settings.timing,
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
