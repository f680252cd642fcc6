"""Runners, warm ones first: imports, data and compiled steps are worth tens of seconds."""

import asyncio
import itertools
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from workers.runner.environment import Environment
from workers.supervise.environment import runner_environment
from workers.supervise.launch import RUNNER, Execute, Launcher
from workers.supervise.masking import Masker
from workers.supervise.nursery import ForkOrExecute, Nursery
from workers.supervise.process import RunnerProcess
from workers.supervise.usage import ProcessTree

MOST_TASKS = 50


class Key(NamedTuple):
    """Who may reuse a runner: its own root job alone, in the same process environment."""

    root: int
    environment: Environment
    devices: str | None = None


@dataclass
class RunnerPool:
    """Hands out runners and takes them back. `slots` bounds the busy and idle ones together."""

    folder: Path
    slots: int
    idle_seconds: float
    idle_memory: int
    """An idle runner above this many bytes is not kept."""
    masker: Masker = field(default_factory=Masker)
    module: str = RUNNER
    nursery: Nursery | None = None
    """Forks the runners that need JAX; without it each imports everything anew."""
    _idle: dict[RunnerProcess, Key] = field(default_factory=dict)
    _busy: set[RunnerProcess] = field(default_factory=set)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def take(self, key: Key, *, needs_jax: bool = True) -> RunnerProcess:
        """Return an idle runner of `key`, or a new one."""
        for runner, its_key in list(self._idle.items()):
            if its_key == key and runner.alive:
                del self._idle[runner]
                self._busy.add(runner)
                return runner
        await self._make_room()
        runner = await self._start(key, needs_jax=needs_jax)
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
        await runner.end()
        runner.dispose()
        await asyncio.to_thread(shutil.rmtree, runner.folder, ignore_errors=True)

    async def sweep(self) -> None:
        """End what has been idle for too long, or died while idle."""
        too_old = time.monotonic() - self.idle_seconds
        await self._discard_idle(lambda runner: not runner.alive or runner.idle_since < too_old)
        if self.nursery is not None:
            await self.nursery.sweep()

    async def close(self) -> None:
        """End every idle runner, and the fork servers with whatever they have forked."""
        await self._discard_idle(lambda _runner: True)
        if self.nursery is not None:
            await self.nursery.close()

    @property
    def pids(self) -> list[int]:
        """The processes there are."""
        return [runner.pid for runner in (*self._busy, *self._idle)]

    async def _discard_idle(self, condemned: Callable[[RunnerProcess], bool]) -> None:
        for runner in [runner for runner in self._idle if condemned(runner)]:
            await self.discard(runner)

    async def _make_room(self) -> None:
        while self._idle and len(self._idle) + len(self._busy) >= self.slots:
            longest_idle = next(iter(self._idle))
            del self._idle[longest_idle]  # at once: nobody else may take it or end it
            await asyncio.shield(self.discard(longest_idle))  # to its end, though whoever needs room gives up

    async def _start(self, key: Key, *, needs_jax: bool) -> RunnerProcess:
        folder = self.folder / str(next(self._numbers))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        environment = runner_environment(folder, devices=key.devices)
        launcher: Launcher = Execute(self.module)
        if needs_jax and self.nursery is not None:
            launcher = ForkOrExecute(self.nursery, key.environment)
        return await RunnerProcess.start(folder, launcher, environment=environment, masker=self.masker)
