"""Runners, warm ones first: imports, data and compiled steps are worth tens of seconds."""

import asyncio
import itertools
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from workers.runner.environment import Environment
from workers.supervise.environment import runner_environment
from workers.supervise.fork_servers import ForkOrExecute, Nursery
from workers.supervise.launch import RUNNER, Execute, Launcher
from workers.supervise.masking import Masker
from workers.supervise.process import RunnerProcess
from workers.supervise.standby import Role, Standbys
from workers.supervise.usage import ProcessTree

log = logging.getLogger(__name__)

MOST_TASKS = 50


class Key(NamedTuple):
    """Who may reuse a runner: its own root job alone, in the same process environment."""

    root: int
    environment: Environment
    devices: str | None = None

    @property
    def role(self) -> Role:
        """The standby that would do."""
        return Role(self.environment, self.devices)


@dataclass
class RunnerPool:
    """Hands out runners and takes them back. `slots` bounds the busy and idle ones together.

    Standbys come on top; `standbys` keeps and bounds them.
    """

    folder: Path
    slots: int
    idle_seconds: float
    idle_memory: int
    """An idle runner above this many bytes is not kept."""
    masker: Masker = field(default_factory=Masker)
    module: str = RUNNER
    nursery: Nursery | None = None
    """Forks the runners that need JAX; without it each imports everything anew."""
    on_taken: Callable[[Key], None] = lambda _key: None
    """Told of every runner that needs JAX: what is often asked for is worth a standby."""
    _idle: dict[RunnerProcess, Key] = field(default_factory=dict)
    _busy: set[RunnerProcess] = field(default_factory=set)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.standbys = Standbys(self._fork_standby, self._end)

    async def take(self, key: Key, *, needs_jax: bool = True) -> RunnerProcess:
        """Return an idle runner of `key`, else a standby, else a new one."""
        if needs_jax:
            self.on_taken(key)
        for runner, its_key in list(self._idle.items()):
            if its_key == key and runner.alive:
                del self._idle[runner]
                self._busy.add(runner)
                return runner
        await self._make_room()
        warm = self.standbys.take(key.role) if needs_jax else None
        if warm is None:
            await self.standbys.clear_devices(key.devices)
        runner = warm or await self._start(key, needs_jax=needs_jax)
        self._busy.add(runner)
        return runner

    async def give_back(self, runner: RunnerProcess, key: Key) -> None:
        """Keep a runner that ended its task in good order for the next one of its kind."""
        runner.tasks_served += 1
        runner.idle_since = time.monotonic()
        usage = await asyncio.to_thread(ProcessTree(runner.pid).measure)
        if runner.alive and runner.tasks_served < MOST_TASKS and usage.memory <= self.idle_memory:
            self._busy.discard(runner)
            self._idle[runner] = key
        else:
            await self.discard(runner)

    async def discard(self, runner: RunnerProcess) -> None:
        """End a runner and remove its folder."""
        self._idle.pop(runner, None)
        self._busy.discard(runner)
        await self._end(runner)

    async def sweep(self) -> None:
        """End what has been idle for too long, or died while idle."""
        too_old = time.monotonic() - self.idle_seconds
        await self._discard_idle(lambda runner: not runner.alive or runner.idle_since < too_old)
        if self.nursery is not None:
            await self.nursery.sweep()

    async def close(self) -> None:
        """End every idle runner and standby, and the fork servers with whatever they have forked."""
        await self._discard_idle(lambda _runner: True)
        await self.standbys.clear()
        if self.nursery is not None:
            await self.nursery.close()

    @property
    def pids(self) -> list[int]:
        """The processes that work or have worked."""
        return [runner.pid for runner in (*self._busy, *self._idle)]

    @property
    def free_slots(self) -> int:
        """How many more tasks may run; idle runners make room for them."""
        return self.slots - len(self._busy)

    async def _discard_idle(self, condemned: Callable[[RunnerProcess], bool]) -> None:
        for runner in [runner for runner in self._idle if condemned(runner)]:
            await self.discard(runner)

    async def _make_room(self) -> None:
        while self._idle and len(self._idle) + len(self._busy) >= self.slots:
            longest_idle = next(iter(self._idle))
            del self._idle[longest_idle]  # at once: nobody else may take it or end it
            await asyncio.shield(self.discard(longest_idle))  # to its end, though whoever needs room gives up

    async def _start(self, key: Key, *, needs_jax: bool) -> RunnerProcess:
        launcher: Launcher = Execute(self.module)
        if needs_jax and self.nursery is not None:
            launcher = ForkOrExecute(self.nursery, key.environment)
        return await self._launch(launcher, key.devices)

    async def _fork_standby(self, role: Role) -> RunnerProcess | None:
        """Fork one from a server that is there or can be started; a new interpreter would be no standby."""
        server = None if self.nursery is None else await self.nursery.server_for(role.environment)
        if server is None:
            return None
        try:
            return await self._launch(server, role.devices)
        except OSError as error:
            log.warning("there is no standby: %s", error)
            return None

    async def _launch(self, launcher: Launcher, devices: str | None) -> RunnerProcess:
        folder = self.folder / str(next(self._numbers))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        environment = runner_environment(folder, devices=devices)
        return await RunnerProcess.start(folder, launcher, environment=environment, masker=self.masker)

    async def _end(self, runner: RunnerProcess) -> None:
        await runner.end()
        runner.dispose()
        await asyncio.to_thread(shutil.rmtree, runner.folder, ignore_errors=True)
