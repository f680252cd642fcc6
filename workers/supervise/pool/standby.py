"""Keeps standby runners: started and warmed up ahead of need, so that a job's first task starts fast.

A standby has seen no project's data. The first task makes it a job's ordinary runner. Standbys do not
count as slots: there are few, and the node ends them when it needs their memory or cores.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jobs.messages.control import Rehearse
from workers.runner.environment import Environment
from workers.supervise.pool.runner_process import RunnerProcess

log = logging.getLogger(__name__)

# Seconds. A warm-up takes one second, or three the first time on a machine.
WARM_UP_TIMEOUT = 120.0
State = Literal["preparing", "ready"]


class StandbyKey(NamedTuple):
    """Decides which tasks a standby fits: once JAX has started, its environment and devices are fixed.

    Attributes:
        environment: the process's settings.
        devices: the GPUs that it opens.
    """

    environment: Environment
    devices: str | None = None


@dataclass(eq=False)
class Standby:
    """One standby process.

    Attributes:
        key: the tasks that it fits.
        runner: the process.
        cache: the folder for the programs that its warm-up compiles.
        ready: whether it has warmed up.
        started_at: seconds since 1970.
    """

    key: StandbyKey
    runner: RunnerProcess
    cache: Path
    ready: bool = False
    started_at: float = field(default_factory=time.time)

    @property
    def state(self) -> State:
        return "ready" if self.ready else "preparing"


@dataclass
class Standbys:
    """A node's standbys. `start` returns a runner for a key, or None."""

    start: Callable[[StandbyKey], Awaitable[RunnerProcess | None]]
    end: Callable[[RunnerProcess], Awaitable[None]]
    _standbys: list[Standby] = field(default_factory=list)

    @property
    def all(self) -> list[Standby]:
        return list(self._standbys)

    async def take(self, key: StandbyKey) -> RunnerProcess | None:
        """Remove a ready standby and return its runner; None if none is ready."""
        fitting = (
            standby
            for standby in self._standbys
            if standby.key == key and standby.ready and standby.runner.alive
        )
        standby = next(fitting, None)
        if standby is None:
            return None
        self._standbys.remove(standby)
        standby.runner.set_listener(None)
        # A task may run user code, which must not change programs that other standbys will execute.
        if standby.runner.access is not None:
            try:
                standby.runner.access.revoke(standby.cache)
            except OSError as error:
                log.warning("a standby is ended, because it would keep its compile cache: %s", error)
                await asyncio.shield(self.end(standby.runner))
                return None
        return standby.runner

    def count(self, key: StandbyKey) -> int:
        """Return how many standbys there are for `key`, ready or preparing."""
        return sum(standby.key == key for standby in self._standbys)

    async def add(self, key: StandbyKey, *, cache: Path) -> bool:
        """Start a standby for `key` and wait until it is ready; return False if that fails.

        Args:
            key: the tasks that it fits.
            cache: the folder for the programs that warm-ups compile.
        """
        await self.clear_devices(key.devices)
        if (runner := await self.start(key)) is None:
            return False
        try:
            if runner.access is not None:
                runner.access.grant(cache)
        except OSError as error:
            log.warning("a standby cannot use its compile cache: %s", error)
            await self.end(runner)
            return False
        standby = Standby(key, runner, cache)
        self._standbys.append(standby)
        reported: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def on_line(line: bytes) -> None:
            if not reported.done():
                reported.set_result(_is_ready(line))

        runner.set_listener(on_line)
        folder = str(runner.work_folder / "rehearsal")
        request = Rehearse(folder=folder, compile_cache=str(cache), **key.environment._asdict())
        runner.send(request)
        try:
            first: list[asyncio.Future[Any]] = [reported, runner.ended]
            await asyncio.wait(first, timeout=WARM_UP_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Also after a cancellation, which may end the wait before the standby is warm.
            standby.ready = reported.done() and reported.result()
            if not standby.ready:
                await asyncio.shield(self._drop(standby))
        return standby.ready

    async def clear(self, should_end: Callable[[Standby], bool] = lambda _: True) -> None:
        """End the standbys for which `should_end` holds, and dead ones."""
        for standby in self.all:
            if should_end(standby) or not standby.runner.alive:
                await self._drop(standby)

    async def clear_devices(self, devices: str | None) -> None:
        """End the standbys that use any of `devices`, which a task is about to get."""
        await self.clear(lambda standby: share_devices(standby.key.devices, devices))

    async def _drop(self, standby: Standby) -> None:
        if standby in self._standbys:
            # Removed before the first await, so that nothing else takes or ends it.
            self._standbys.remove(standby)
            await asyncio.shield(self.end(standby.runner))


def share_devices(first: str | None, second: str | None) -> bool:
    """Return whether two CUDA_VISIBLE_DEVICES values have a device in common."""
    if not first or not second:
        return False
    return not set(first.split(",")).isdisjoint(second.split(","))


def _is_ready(line: bytes) -> bool:
    try:
        event = json.loads(line)
    except ValueError:
        return False
    if event.get("type") != "ready":
        log.warning("a standby could not warm up: %s", event.get("message", event))
    return bool(event.get("type") == "ready")
