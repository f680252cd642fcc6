"""Manages a node's fork servers: one for each process environment, started on first use."""

import asyncio
import itertools
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from workers.confinement.forking.client import Child
from workers.runner.environment import Environment
from workers.supervise.pool.fork_server import RunnerForkServer
from workers.supervise.pool.launcher import RunnerDescriptors, RunnerStart, SpawnLauncher
from workers.system.environment import runner_environment

log = logging.getLogger(__name__)

# Each takes about 250 MB of memory.
MAX_FORK_SERVERS = 3

Start = asyncio.Task[RunnerForkServer | None]


@dataclass
class ForkServers:
    """Starts fork servers and keeps them while they have runners, and for `idle_seconds` after.

    Attributes:
        folder: has a folder for each server.
        idle_seconds: how long a server without runners is kept.
        module: the module that forked runners execute.
    """

    folder: Path
    idle_seconds: float
    module: str
    _starts: dict[Environment, Start] = field(default_factory=dict)
    _endings: set[asyncio.Task[None]] = field(default_factory=set)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def server_for(self, environment: Environment) -> RunnerForkServer | None:
        """Return a server that is ready, after its imports if it is new; None if none can be started now."""
        start = self._starts.get(environment)
        if start is not None and (server := _result(start)) is not None and not server.alive:
            self._drop(environment)
            start = None
        if start is None:
            # The task is stored before its first await, so that concurrent callers share one start.
            if len(self._starts) >= MAX_FORK_SERVERS and not self._make_room():
                return None
            start = self._starts[environment] = asyncio.create_task(self._start(environment))
        # `wait`, not `await start`: a cancelled caller must not stop a start that others may await.
        await asyncio.wait({start})
        return _result(start)

    def servers(self) -> dict[Environment, RunnerForkServer | None]:
        """Return all servers by environment; None for one that is starting or failed to start."""
        return {environment: _result(start) for environment, start in self._starts.items()}

    async def sweep(self) -> None:
        """End servers that were idle for too long, and drop dead and failed ones."""
        too_old = time.monotonic() - self.idle_seconds
        self._drop_where(lambda server: not server.alive or (server.idle and server.last_used < too_old))
        await self._wait_for_ends()

    async def close(self) -> None:
        """End all servers, and with them the runners that they forked."""
        for start in self._starts.values():
            start.cancel()  # no effect once it is done
        if self._starts:
            await asyncio.wait(list(self._starts.values()))
        self._drop_where(lambda _server: True)
        await self._wait_for_ends()

    async def _start(self, environment: Environment) -> RunnerForkServer | None:
        folder = self.folder / f"forkserver-{next(self._numbers)}"
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, mode=0o700)
            return await RunnerForkServer.start(
                folder, environment, variables=runner_environment(folder), module=self.module
            )
        # The failed start stays in `_starts`, so it is not tried again before the next sweep.
        except OSError as error:
            log.warning("runners start without a fork server, which is slower: %s", error)
            shutil.rmtree(folder, ignore_errors=True)
            return None
        # The worker ends.
        except asyncio.CancelledError:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _make_room(self) -> bool:
        """Drop the idle server that was unused for the longest; return False if all are busy."""
        servers = {e: server for e, start in self._starts.items() if (server := _result(start))}
        free = [environment for environment, server in servers.items() if server.idle]
        if not free:
            return False
        self._drop(min(free, key=lambda environment: servers[environment].last_used))
        return True

    def _drop_where(self, should_end: Callable[[RunnerForkServer], bool]) -> None:
        for environment, start in list(self._starts.items()):
            if start.done() and ((server := _result(start)) is None or should_end(server)):
                self._drop(environment)

    def _drop(self, environment: Environment) -> None:
        """Remove a server at once, so that it is not handed out any more, and end it in the background."""
        server = _result(self._starts.pop(environment))
        if server is not None:
            ending = asyncio.create_task(_end(server))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)

    async def _wait_for_ends(self) -> None:
        if self._endings:
            await asyncio.wait(list(self._endings))


@dataclass(frozen=True)
class ForkOrSpawnLauncher:
    """Forks a runner if a fork server is available, or else spawns a new interpreter."""

    fork_servers: ForkServers
    environment: Environment

    async def launch(self, start: RunnerStart, descriptors: RunnerDescriptors) -> Child:
        server = await self.fork_servers.server_for(self.environment)
        if server is not None:
            try:
                return await server.launch(start, descriptors)
            except OSError as error:
                log.warning("a runner was started as a new interpreter because the fork failed: %s", error)
        return await SpawnLauncher(self.fork_servers.module).launch(start, descriptors)


async def _end(server: RunnerForkServer) -> None:
    await server.end()
    await asyncio.to_thread(shutil.rmtree, server.folder, ignore_errors=True)


def _result(start: Start) -> RunnerForkServer | None:
    return start.result() if start.done() and not start.cancelled() else None
