"""The fork servers of a node: one for each process environment, started when it is first needed."""

import asyncio
import itertools
import logging
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workers.runner.environment import Environment
from workers.supervise.environment import runner_environment
from workers.supervise.forkserver import ForkServer
from workers.supervise.launch import Child, Ends, Execute

log = logging.getLogger(__name__)

MOST = 3
"""Fork servers at once: each holds some 250 MB beside what runners are given."""

Start = asyncio.Task[ForkServer | None]


@dataclass
class Nursery:
    """Keeps fork servers while they have runners, and for `idle_seconds` after."""

    folder: Path
    idle_seconds: float
    module: str
    _starts: dict[Environment, Start] = field(default_factory=dict)
    _endings: set[asyncio.Task[None]] = field(default_factory=set)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def server_for(self, environment: Environment) -> ForkServer | None:
        """Return one that is ready, after its imports if it is new; None if it cannot be had now."""
        start = self._starts.get(environment)
        if start is not None and (server := _result(start)) is not None and not server.alive:
            self._drop(environment)
            start = None
        if start is None:
            if len(self._starts) >= MOST and not self._make_room():
                return None
            start = self._starts[environment] = asyncio.create_task(self._start(environment))
        await asyncio.wait({start})  # whoever waits may be cancelled; the start goes on for the others
        return _result(start)

    def servers(self) -> dict[Environment, ForkServer | None]:
        """Return those there are; None for one that still imports, or could not be had."""
        return {environment: _result(start) for environment, start in self._starts.items()}

    async def sweep(self) -> None:
        """End those that have no runner and were not used for long; forget the dead and the failed."""
        too_old = time.monotonic() - self.idle_seconds
        self._drop_where(lambda server: not server.alive or (server.childless and server.used < too_old))
        await self._all_ended()

    async def close(self) -> None:
        """End them all, and every runner that they have forked."""
        for start in self._starts.values():
            start.cancel()  # does nothing to one that is done
        if self._starts:
            await asyncio.wait(list(self._starts.values()))
        self._drop_where(lambda _server: True)
        await self._all_ended()

    async def _start(self, environment: Environment) -> ForkServer | None:
        folder = self.folder / f"forkserver-{next(self._numbers)}"
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, mode=0o700)
            return await ForkServer.start(
                folder, environment, variables=runner_environment(folder), module=self.module
            )
        except OSError as error:  # until the next sweep, nobody tries again
            log.warning("runners start without a fork server, and slower: %s", error)
            shutil.rmtree(folder, ignore_errors=True)
            return None

    def _make_room(self) -> bool:
        """Drop the one that has no runner and was unused for the longest."""
        servers = {e: server for e, start in self._starts.items() if (server := _result(start))}
        free = [environment for environment, server in servers.items() if server.childless]
        if not free:
            return False
        self._drop(min(free, key=lambda environment: servers[environment].used))
        return True

    def _drop_where(self, condemned: Callable[[ForkServer], bool]) -> None:
        for environment, start in list(self._starts.items()):
            if start.done() and ((server := _result(start)) is None or condemned(server)):
                self._drop(environment)

    def _drop(self, environment: Environment) -> None:
        """Forget one at once, so that nobody gets it any more, and end it beside everything else."""
        server = _result(self._starts.pop(environment))
        if server is not None:
            ending = asyncio.create_task(_end(server))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)

    async def _all_ended(self) -> None:
        if self._endings:
            await asyncio.wait(list(self._endings))


@dataclass(frozen=True)
class ForkOrExecute:
    """A `Launcher`: forks where a fork server can be had, executes where not."""

    nursery: Nursery
    environment: Environment

    async def launch(self, folder: Path, environment: Mapping[str, str], ends: Ends) -> Child:
        """See `Launcher`."""
        server = await self.nursery.server_for(self.environment)
        if server is not None:
            try:
                return await server.launch(folder, environment, ends)
            except OSError as error:
                log.warning("a runner is executed, not forked: %s", error)
        return await Execute(self.nursery.module).launch(folder, environment, ends)


async def _end(server: ForkServer) -> None:
    await server.end()
    await asyncio.to_thread(shutil.rmtree, server.folder, ignore_errors=True)


def _result(start: Start) -> ForkServer | None:
    return start.result() if start.done() and not start.cancelled() else None
