"""What is kept warm while nothing runs: the fork server and the standby of the environments most in use.

A standby must cost nobody anything: it is made while cores are idle and a slot is free, and ended when every
slot is taken or memory is short.
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

from workers.node.inventory import cores, memory_left
from workers.runner.environment import Environment
from workers.supervise.devices import Devices
from workers.supervise.pool import Key, RunnerPool
from workers.supervise.standby import Role
from workers.supervise.timing import Timing

log = logging.getLogger(__name__)

REMEMBERED = 20
IDLE_CORES = 0.5
"""A machine with less than this to spare has something better to do for a while."""
LEAST_MEMORY = 2**30
"""Bytes that are left to others: a standby with its fork server takes less than half of it."""
PLATFORMS = (None, "cpu", "cuda", "tpu")
MOST_SIMULATED = 64
AGAIN = 60.0
"""Seconds until a standby that could not be had is tried again."""


class Habits:
    """The environments of the newest tasks, in a file that outlives the node."""

    def __init__(self, file: Path, usual: Environment) -> None:
        self._file = file
        self._usual = usual
        self._newest = deque(_read(file), maxlen=REMEMBERED)

    def note(self, environment: Environment) -> None:
        """A task needed this one."""
        before = self.favourites(REMEMBERED)
        self._newest.append(environment)
        if self.favourites(REMEMBERED) != before:
            self._keep()

    def _keep(self) -> None:
        """Write them down. A full disk is no reason to refuse a task: the next node begins with the usual."""
        unfinished = self._file.with_suffix(".new")
        try:
            unfinished.write_text(json.dumps(list(self._newest)))
            unfinished.replace(self._file)
        except OSError as error:
            log.warning("what is in use here cannot be noted: %s", error)

    def favourites(self, most: int) -> list[Environment]:
        """Return those in most use, first first; what one slot gives is among them until others are."""
        counts = Counter(reversed(self._newest))
        counts.setdefault(self._usual, 0)
        return [environment for environment, _ in counts.most_common(most)]


@dataclass
class Warmth:
    """Looks around every so often; `most` standbys are kept, 0 for none and no early fork server either."""

    pool: RunnerPool
    habits: Habits
    devices: Devices
    cache: Path
    most: int
    timing: Timing
    _asked: float = field(default_factory=time.monotonic)
    _again: dict[Role, float] = field(default_factory=dict)
    _adding: asyncio.Task[None] | None = None
    _cores: "IdleCores" = field(default_factory=lambda: IdleCores())

    def __post_init__(self) -> None:
        self.pool.on_taken = self._on_taken

    async def run(self, *, leaving: Callable[[], bool]) -> None:
        """Work until cancelled."""
        try:
            while self.most:
                await asyncio.sleep(self.timing.standby_quiet)
                try:
                    await self._look(leaving=leaving())
                except Exception:  # it shares the node's fate: a luxury must not end it
                    log.exception("nothing is kept warm for now")
        finally:
            if self._adding is not None:
                self._adding.cancel()
                await asyncio.wait([self._adding])

    async def _look(self, *, leaving: bool) -> None:
        idle, standbys = self._cores.since_last_look(), self.pool.standbys
        if leaving or self.pool.free_slots <= 0 or memory_left() < LEAST_MEMORY:
            await standbys.clear()
            return
        roles = self._roles()
        await standbys.clear(lambda standby: standby.role not in roles)
        now = time.monotonic()
        timing = self.timing
        quiet = timing.standby_quiet if idle >= IDLE_CORES else timing.standby_patience
        if now - self._asked < quiet or (self._adding is not None and not self._adding.done()):
            return
        for role in roles:
            if not standbys.has(role) and self._again.get(role, 0.0) < now:
                # Beside us: one that rehearses is ended as well as any other, once it is in the way.
                self._adding = asyncio.create_task(self._add(role), name="standby")
                return  # one at a time: a later look sees what has changed

    async def _add(self, role: Role) -> None:
        added = False
        try:
            added = await self.pool.standbys.add(role, cache=self.cache)
        except Exception:  # as in `run`; and it is not to be tried again at every look
            log.exception("no standby can be had for now")
        if not added:
            self._again[role] = time.monotonic() + AGAIN

    def _roles(self) -> list[Role]:
        devices = ",".join(self.devices.next_free(1)) or None
        return [Role(environment, devices) for environment in self.habits.favourites(self.most)]

    def _on_taken(self, key: Key) -> None:
        self._asked = time.monotonic()
        self.habits.note(key.environment)


class IdleCores:
    """How many of the machine's cores had nothing to do."""

    def __init__(self) -> None:
        self._before = psutil.cpu_times()

    def since_last_look(self) -> float:
        """Return their number, on the average since the last call."""
        before, self._before = self._before, psutil.cpu_times()
        spent = [now - then for now, then in zip(self._before, before, strict=True)]
        total = sum(spent)
        return cores() * (self._before.idle - before.idle) / total if total > 0 else 0.0


def _read(file: Path) -> Iterable[Environment]:
    """Return what an earlier node noted, without what this machine cannot give or nobody has written so."""
    try:
        noted = [Environment(*entry) for entry in json.loads(file.read_text())]
        return [one for one in noted if _possible(one)]
    except (OSError, ValueError, TypeError):
        return []


def _possible(environment: Environment) -> bool:
    threads, platform, devices = environment
    return 1 <= threads <= (os.cpu_count() or 1) and platform in PLATFORMS and 1 <= devices <= MOST_SIMULATED
