"""Keeps fork servers and standby runners for the environments used most, while the machine is idle.

A standby must not slow down other work: it is started while cores are idle and a slot is free, and ended when
all slots are busy or memory is short.
"""

import asyncio
import json
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from jobs.logged_errors import log_errors
from workers.node.inventory import available_memory, cores
from workers.runner.environment import Environment
from workers.supervise.attempt.devices import Devices
from workers.supervise.pool.runner_pool import RunnerPool
from workers.supervise.pool.standby import Standby, StandbyKey
from workers.supervise.timing import Timing

log = logging.getLogger(__name__)

HISTORY_LENGTH = 20
MIN_IDLE_CORES = 0.5
"""With fewer idle cores than this, the machine is busy and a standby has to wait."""
# A standby and its fork server together need less than half of it.
MIN_FREE_MEMORY = 2**30
PLATFORMS = (None, "cpu", "cuda", "tpu")
MAX_SIMULATED_DEVICES = 64
RETRY_SECONDS = 60.0
"""Time before a standby that could not be started is tried again."""


class EnvironmentHistory:
    """The environments that the latest tasks had, in a file that survives a restart."""

    def __init__(self, file: Path, default: Environment) -> None:
        self._file = file
        self._default = default
        self._latest = deque(_read(file), maxlen=HISTORY_LENGTH)

    def record(self, environment: Environment) -> None:
        """Note that a task needed this environment, unless a standby for it would take a whole GPU."""
        if environment.preallocate:
            return
        before = self.most_used(HISTORY_LENGTH)
        self._latest.append(environment)
        # Most tasks do not change the order, which is all that a later node needs: no write for those.
        if self.most_used(HISTORY_LENGTH) == before:
            return
        temporary = self._file.with_suffix(".new")
        try:
            temporary.write_text(json.dumps(list(self._latest)))
            temporary.replace(self._file)
        except OSError as error:  # must not fail the task: the next node then starts from the default
            log.warning("the history of environments could not be saved: %s", error)

    def most_used(self, count: int) -> list[Environment]:
        """Return the environments used most, most frequent first. The default counts as used least."""
        # `most_common` keeps the order of first occurrence among equals: reversed, the latest comes first.
        counts = Counter(reversed(self._latest))
        counts.setdefault(self._default, 0)
        return [environment for environment, _ in counts.most_common(count)]


@dataclass
class StandbyManager:
    """Starts and ends standbys.

    Attributes:
        max_standbys: how many there may be; with 0 it starts no fork server either.
    """

    pool: RunnerPool
    history: EnvironmentHistory
    devices: Devices
    cache: Path
    max_standbys: int
    timing: Timing
    _last_task_at: float = field(default_factory=time.monotonic)
    _retry_at: dict[StandbyKey, float] = field(default_factory=dict)
    _adding: asyncio.Task[None] | None = None
    _cores: "IdleCores" = field(default_factory=lambda: IdleCores())

    def __post_init__(self) -> None:
        self.pool.on_taken = self._on_taken

    async def run(self, *, draining: Callable[[], bool]) -> None:
        """Run until cancelled."""
        try:
            while self.max_standbys:
                await asyncio.sleep(self.timing.standby_quiet)
                # Standbys are optional, so an error here must not end the node.
                with log_errors(log, "the standbys could not be updated"):
                    await self._update(draining=draining())
        finally:
            if self._adding is not None:
                self._adding.cancel()
                await asyncio.wait([self._adding])

    async def _update(self, *, draining: bool) -> None:
        idle, standbys = self._cores.since_last_call(), self.pool.standbys
        if draining or self.pool.free_slots <= 0 or available_memory() < MIN_FREE_MEMORY:
            await standbys.clear()
            return
        keys = self._target_keys()
        await standbys.clear(self._superfluous(keys))
        now, timing = time.monotonic(), self.timing
        # A machine that is never idle gets its standby later: a free slot belongs to Trainyard.
        quiet = timing.standby_quiet if idle >= MIN_IDLE_CORES else timing.standby_patience
        if now - self._last_task_at < quiet or (self._adding is not None and not self._adding.done()):
            return
        for key, number in Counter(keys).items():
            if standbys.count(key) < number and self._retry_at.get(key, 0.0) < now:
                # In a task of its own: a standby that still warms up can be ended meanwhile, like any other.
                self._adding = asyncio.create_task(self._add(key), name="standby")
                return  # one at a time: the next update sees what has changed

    def _target_keys(self) -> list[StandbyKey]:
        """Return a key for each standby that there should be."""
        # A standby opens the device that the next task would get, and none that others have filled.
        following = self.devices.next(1, avoid=self.devices.avoided)
        if self.devices.count and not following:
            return []
        devices = ",".join(following) or None
        return [StandbyKey(environment, devices) for environment in self.history.most_used(self.max_standbys)]

    def _superfluous(self, keys: Iterable[StandbyKey]) -> Callable[[Standby], bool]:
        left = Counter(keys)

        def is_superfluous(standby: Standby) -> bool:
            left[standby.key] -= 1
            return left[standby.key] < 0

        return is_superfluous

    async def _add(self, key: StandbyKey) -> None:
        added = False
        with log_errors(log, "a standby could not be started"):
            added = await self.pool.standbys.add(key, cache=self.cache)
        # A failed start costs seconds of CPU, so it is not repeated at each update.
        if not added:
            self._retry_at[key] = time.monotonic() + RETRY_SECONDS

    def _on_taken(self, key: StandbyKey) -> None:
        self._last_task_at = time.monotonic()
        self.history.record(key.environment)


class IdleCores:
    """Measures how many of the machine's cores are idle."""

    def __init__(self) -> None:
        self._before = psutil.cpu_times()

    def since_last_call(self) -> float:
        """Return how many cores were idle on average since the last call."""
        before, self._before = self._before, psutil.cpu_times()
        spent = [now - then for now, then in zip(self._before, before, strict=True)]
        total = sum(spent)
        return cores() * (self._before.idle - before.idle) / total if total > 0 else 0.0


def _read(file: Path) -> Iterable[Environment]:
    """Return the saved environments that this machine can provide; none if the file is missing or invalid."""
    try:
        saved = [Environment(*entry) for entry in json.loads(file.read_text())]
        return [environment for environment in saved if _is_possible(environment)]
    except (OSError, ValueError, TypeError):
        return []


def _is_possible(environment: Environment) -> bool:
    fraction = environment.memory_fraction
    return (
        1 <= environment.threads <= (os.cpu_count() or 1)
        and environment.platform in PLATFORMS
        and 1 <= environment.simulated_devices <= MAX_SIMULATED_DEVICES
        and environment.preallocate is False
        and (fraction is None or 0 < fraction <= 1)
    )
