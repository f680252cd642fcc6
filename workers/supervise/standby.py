"""Standby runners: forked and rehearsed ahead of need, so that the first task of a job starts warm.

They know nothing of any project; the first task makes one a runner of its job, as any other. They are no part
of the slots: there are few, and whoever keeps them ends them when their memory or cores are wanted.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jobs.contracts.control import Rehearse
from workers.runner.environment import Environment
from workers.supervise.process import RunnerProcess

log = logging.getLogger(__name__)

REHEARSING = 120.0
"""Seconds for a rehearsal; it takes one, or three the first time on a machine."""
State = Literal["preparing", "ready"]


class Role(NamedTuple):
    """What a standby is for: it has started JAX, so both are settled."""

    environment: Environment
    devices: str | None = None


@dataclass
class Standby:
    """One process, warm once `ready`."""

    role: Role
    runner: RunnerProcess
    ready: bool = False
    born: float = field(default_factory=time.time)

    @property
    def state(self) -> State:
        """What it does."""
        return "ready" if self.ready else "preparing"


@dataclass
class Standbys:
    """At most one for each role. `fork` gives a runner that has its imports, or None."""

    fork: Callable[[Role], Awaitable[RunnerProcess | None]]
    end: Callable[[RunnerProcess], Awaitable[None]]
    _kept: dict[Role, Standby] = field(default_factory=dict)

    @property
    def all(self) -> list[Standby]:
        """Those there are."""
        return list(self._kept.values())

    def take(self, role: Role) -> RunnerProcess | None:
        """Give one away, at once and for good; None if none is ready."""
        standby = self._kept.get(role)
        if standby is None or not standby.ready or not standby.runner.alive:
            return None
        del self._kept[role]
        standby.runner.listen(None)
        return standby.runner

    def has(self, role: Role) -> bool:
        """Whether there is one for `role`, ready or about to be."""
        return role in self._kept

    async def add(self, role: Role, *, cache: Path) -> bool:
        """Have one for `role` that there is none for yet; returns when it is ready, or False.

        Args:
            role: what for.
            cache: folder of the programs that rehearsals compile.
        """
        await self.clear_devices(role.devices)
        if (runner := await self.fork(role)) is None:
            return False
        standby = self._kept[role] = Standby(role, runner)
        said: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        runner.listen(lambda line: _settle(said, _is_ready(line)))
        runner.tell(_order(role, runner, cache))
        try:
            first: list[asyncio.Future[Any]] = [said, runner.ended]
            await asyncio.wait(first, timeout=REHEARSING, return_when=asyncio.FIRST_COMPLETED)
        finally:
            standby.ready = said.done() and said.result()
            if not standby.ready:
                await asyncio.shield(self._drop(standby))
        return standby.ready

    async def clear(self, condemned: Callable[[Standby], bool] = lambda _: True) -> None:
        """End those that are condemned, and the dead."""
        for standby in self.all:
            if condemned(standby) or not standby.runner.alive:
                await self._drop(standby)

    async def clear_devices(self, devices: str | None) -> None:
        """End those that sit on a device which a task is about to get."""
        wanted = set((devices or "").split(",")) - {""}
        await self.clear(lambda standby: not wanted.isdisjoint((standby.role.devices or "").split(",")))

    async def _drop(self, standby: Standby) -> None:
        if self._kept.get(standby.role) is standby:
            del self._kept[standby.role]  # at once: nobody else may take it or end it
            await asyncio.shield(self.end(standby.runner))


def _order(role: Role, runner: RunnerProcess, cache: Path) -> Rehearse:
    folder = runner.folder / "rehearsal"
    return Rehearse(folder=str(folder), compile_cache=str(cache), **role.environment._asdict())


def _is_ready(line: bytes) -> bool:
    try:
        said = json.loads(line)
    except ValueError:
        return False
    if said.get("type") != "ready":
        log.warning("a standby is of no use: %s", said.get("message", said))
    return bool(said.get("type") == "ready")


def _settle(future: "asyncio.Future[bool]", result: bool) -> None:
    if not future.done():
        future.set_result(result)
