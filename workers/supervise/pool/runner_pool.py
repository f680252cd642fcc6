"""Pools runner processes: one that has served a task keeps its imports, data and compiled programs."""

import asyncio
import itertools
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from workers.confinement.isolation.access import Isolation
from workers.confinement.sandbox.launch import SandboxRefused, Starter, spawn
from workers.confinement.start.files import ProcessFiles
from workers.confinement.start.starter import starter_for
from workers.confinement.start.threads import call_in_thread, undone_on_error
from workers.runner.environment import Environment
from workers.supervise.pool.fork_servers import ForkOrSpawnLauncher, ForkServers
from workers.supervise.pool.launcher import (
    MODEL,
    RUNNER,
    Launcher,
    RunnerStart,
    SpawnLauncher,
)
from workers.supervise.pool.runner_process import RunnerProcess
from workers.supervise.pool.runner_sandbox import SandboxNeeds, remove_if_empty
from workers.supervise.pool.sandboxes import Sandboxes, SandboxLauncher
from workers.supervise.pool.standby import StandbyKey, Standbys, share_devices
from workers.system.environment import runner_environment
from workers.system.secret_masking import SecretMasker

log = logging.getLogger(__name__)

# Memory that tasks leave behind in a process accumulates.
MAX_TASKS_PER_RUNNER = 50


class RunnerKey(NamedTuple):
    """Decides whether a runner may be reused: only by its own root job, in the same process environment.

    Attributes:
        root: the root job.
        environment: the process's settings.
        devices: its GPUs, as in CUDA_VISIBLE_DEVICES; None without any.
        sandbox: the needs of its sandbox; None for tasks without user code.
    """

    root: int
    environment: Environment
    devices: str | None = None
    sandbox: SandboxNeeds | None = None

    def standby_key(self) -> StandbyKey:
        """Return the key for a standby that fits a task without user code."""
        return StandbyKey(self.environment, self.devices)


@dataclass
class RunnerPool:
    """Hands out runners. `slots` limits the busy and idle ones together; standbys are not counted.

    After `take`, call `give_back` if the runner may serve another task, else `discard`. The node sets
    `isolation` once it has tried it, and `StandbyManager` sets `on_taken`.
    """

    folder: Path
    """Has a folder for each process."""
    slots: int
    idle_seconds: float
    """How long a runner without a task is kept."""
    idle_memory: int
    """Bytes. A larger runner is not kept idle."""
    masker: SecretMasker = field(default_factory=SecretMasker)
    module: str = RUNNER
    fork_servers: ForkServers | None = None
    """Forks the runners that need JAX. Without it, each runner is a new interpreter."""
    isolation: Isolation | None = None
    """Gives each runner a user of its own. Without it, runners have the user of this process."""
    sandboxes: Sandboxes | None = None
    """Starts the runners with user code. Without it, none is started."""
    model_module: str = MODEL
    """Executes models with user code beside a task."""
    on_taken: Callable[[StandbyKey], None] = lambda _key: None
    """Called for every runner taken that a standby could have been, so that standbys are kept for the keys
    used most."""
    _idle: dict[RunnerProcess, RunnerKey] = field(default_factory=dict)
    _busy: set[RunnerProcess] = field(default_factory=set)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.standbys = Standbys(self._start_standby, self._end)

    async def take(self, key: RunnerKey, *, needs_jax: bool = True) -> RunnerProcess:
        """Return an idle runner with `key`, else a standby if it needs no sandbox, else a new one.

        Raises:
            OSError: it could not be started.
            SandboxRefused: it needs a sandbox that this machine does not offer.
        """
        # Tasks without JAX start fast in a new interpreter.
        may_be_warm = needs_jax and key.sandbox is None
        if may_be_warm:
            self.on_taken(key.standby_key())
        for runner, its_key in list(self._idle.items()):
            if its_key == key and runner.alive:
                del self._idle[runner]
                self._busy.add(runner)
                return runner
        # An idle runner keeps the GPU memory that its tasks have used.
        await self._discard_idle(lambda runner: share_devices(self._idle[runner].devices, key.devices))
        await self._make_room()
        taken = await self.standbys.take(key.standby_key()) if may_be_warm else None
        if taken is None:
            # Another standby may have opened a GPU that the new runner is about to get.
            await self.standbys.clear_devices(key.devices)
            taken = await self._launch_for(key, may_fork=needs_jax)
        self._busy.add(taken)
        return taken

    async def give_back(self, runner: RunnerProcess, key: RunnerKey) -> None:
        """Keep a runner whose task ended normally for the next task with the same key."""
        runner.tasks_served += 1
        runner.idle_since = time.monotonic()
        # An idle runner must not occupy much memory, and it may still hold models and data of its last tasks.
        usage = await asyncio.to_thread(runner.tree().measure)
        if runner.alive and runner.tasks_served < MAX_TASKS_PER_RUNNER and usage.memory <= self.idle_memory:
            self._busy.discard(runner)
            self._idle[runner] = key
        else:
            await self.discard(runner)

    async def discard(self, runner: RunnerProcess) -> None:
        """End a runner and delete its folder."""
        self._idle.pop(runner, None)
        self._busy.discard(runner)
        # Shielded: a cancelled caller must not leave a process that is in neither set.
        await asyncio.shield(self._end(runner))

    async def sweep(self) -> None:
        """End runners that were idle for too long or died while idle."""
        too_old = time.monotonic() - self.idle_seconds
        await self._discard_idle(lambda runner: not runner.alive or runner.idle_since < too_old)
        if self.fork_servers is not None:
            await self.fork_servers.sweep()

    async def close(self) -> None:
        """End every idle runner and standby, and the fork servers with their runners."""
        await self._discard_idle(lambda _runner: True)
        await self.standbys.clear()
        if self.fork_servers is not None:
            await self.fork_servers.close()
        if self.sandboxes is not None:
            await self.sandboxes.close()

    @property
    def pids(self) -> list[int]:
        """The pids of busy and idle runners."""
        return [runner.pid for runner in (*self._busy, *self._idle)]

    @property
    def busy_pids(self) -> list[int]:
        """The pids of runners that run a task."""
        return [runner.pid for runner in self._busy]

    def opened_devices(self) -> set[str]:
        """Return the GPUs that idle runners and standbys may have opened."""
        opened = [key.devices for key in self._idle.values()]
        opened += [standby.key.devices for standby in self.standbys.all]
        return {device for devices in opened for device in (devices or "").split(",") if device}

    @property
    def free_slots(self) -> int:
        """How many further tasks may run; idle runners are ended to make room."""
        return self.slots - len(self._busy)

    async def _discard_idle(self, should_end: Callable[[RunnerProcess], bool]) -> None:
        for runner in list(self._idle):
            # Checked for each: a task may have taken this runner while the one before it was ended.
            if runner in self._idle and should_end(runner):
                await self.discard(runner)

    async def _make_room(self) -> None:
        while self._idle and len(self._idle) + len(self._busy) >= self.slots:
            # Dictionaries keep the order of insertion.
            longest_idle = next(iter(self._idle))
            await self.discard(longest_idle)

    async def _start_standby(self, key: StandbyKey) -> RunnerProcess | None:
        """Start a standby. Returns None if it cannot be started now."""
        # Without a fork server, a new interpreter would not start faster.
        server = None if self.fork_servers is None else await self.fork_servers.server_for(key.environment)
        if server is None:
            return None
        try:
            return await self._launch(server, key.devices)
        except OSError as error:
            log.warning("a standby could not be forked: %s", error)
            return None

    async def _launch_for(self, key: RunnerKey, *, may_fork: bool) -> RunnerProcess:
        if key.sandbox is not None:
            return await self._launch_in_sandbox(key.sandbox, key.environment, may_fork=may_fork)
        launcher: Launcher = SpawnLauncher(self.module)
        if may_fork and self.fork_servers is not None:
            launcher = ForkOrSpawnLauncher(self.fork_servers, key.environment)
        return await self._launch(launcher, key.devices)

    async def _launch_in_sandbox(
        self, needs: SandboxNeeds, environment: Environment, *, may_fork: bool
    ) -> RunnerProcess:
        if (sandboxes := self.sandboxes) is None:
            raise SandboxRefused("this worker starts no code of users")
        await sandboxes.require(needs.code.minimum)
        isolation = self.isolation if sandboxes.have_own_users else None
        starter = await self.sandbox_starter(environment) if may_fork else spawn
        # After the wait for imports, which may be cancelled.
        folder = self.new_folder()
        prepare = partial(sandboxes.prepare, needs, folder, isolation, self.module, starter)
        launcher = await call_in_thread(prepare, SandboxLauncher.close)
        async with undone_on_error(launcher.close):
            start = RunnerStart(folder, {})
            return await RunnerProcess.start(launcher.files, launcher, start=start, masker=self.masker)

    async def sandbox_starter(self, environment: Environment) -> Starter:
        """Return what starts processes with JAX in sandboxes: by forks, where that is possible now."""
        server = None if self.fork_servers is None else await self.fork_servers.server_for(environment)
        return starter_for(server)

    def forget(self, work: Path) -> None:
        """Remove the folder for a runner's tasks after the last one, unless the runner still uses it."""
        if all(runner.work_folder != work for runner in (*self._busy, *self._idle)):
            remove_if_empty(work)

    def new_folder(self) -> Path:
        """Return an empty folder for a process that starts."""
        folder = self.folder / str(next(self._numbers))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        return folder

    async def _launch(self, launcher: Launcher, devices: str | None) -> RunnerProcess:
        create = partial(ProcessFiles.create, self.new_folder(), self.isolation)
        # With a user of its own, this takes a while.
        files = create() if self.isolation is None else await call_in_thread(create, ProcessFiles.close)
        async with undone_on_error(files.close):
            start = self._runner_start(files, devices)
            return await RunnerProcess.start(files, launcher, start=start, masker=self.masker)

    def _runner_start(self, files: ProcessFiles, devices: str | None) -> RunnerStart:
        if self.isolation is None or files.access is None:
            return RunnerStart(files.folder, runner_environment(files.folder, devices=devices))
        home = files.access.home
        environment = runner_environment(home, devices=devices) | {"TMPDIR": str(home)}
        return RunnerStart(home, environment, self.isolation.confinement(files.access))

    async def _end(self, runner: RunnerProcess) -> None:
        await runner.end()
        # First, since its watch reads the size of the logs.
        if runner.sandbox is not None:
            await asyncio.to_thread(runner.sandbox.close)
        runner.close()
        await asyncio.to_thread(runner.files.close)
