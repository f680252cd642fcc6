"""The fork servers of a node: one for each process environment, started when it is first needed."""

import asyncio
import itertools
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from workers.runner.environment import Environment
from workers.supervise.environment import runner_environment
from workers.supervise.forkserver import ForkServer

log = logging.getLogger(__name__)


@dataclass
class Nursery:
    """Keeps fork servers while they have runners, and for `idle_seconds` after."""

    folder: Path
    idle_seconds: float
    module: str
    _starts: "dict[Environment, asyncio.Task[ForkServer | None]]" = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def server_for(self, environment: Environment) -> ForkServer | None:
        """Return one that is ready, after its imports if it is new; None if it cannot be had."""
        known = self._starts.get(environment)
        if known is not None and known.done() and not _useful(known):
            await self._end(environment)
            known = None
        if known is None:
            known = self._starts[environment] = asyncio.create_task(self._start(environment))
        return await asyncio.shield(known)

    async def sweep(self) -> None:
        """End those that have no runner and were not used for long, and forget the dead."""
        too_old = time.monotonic() - self.idle_seconds
        await self._end_where(lambda server: not server.alive or (server.childless and server.used < too_old))

    async def close(self) -> None:
        """End them all, and every runner that they have forked."""
        await self._end_where(lambda _server: True)

    async def _start(self, environment: Environment) -> ForkServer | None:
        folder = self.folder / f"forkserver-{next(self._numbers)}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        try:
            return await ForkServer.start(
                folder, environment, variables=runner_environment(folder), module=self.module
            )
        except OSError as error:
            log.warning("runners start without a fork server, and slower: %s", error)
            return None

    async def _end_where(self, condemned: Callable[[ForkServer], bool]) -> None:
        for environment, start in list(self._starts.items()):
            server = start.result() if start.done() else None
            if server is None or condemned(server):
                await self._end(environment)

    async def _end(self, environment: Environment) -> None:
        start = self._starts.pop(environment)
        server = await start
        if server is not None:
            await server.end()
            await asyncio.to_thread(shutil.rmtree, server.folder, ignore_errors=True)


def _useful(start: "asyncio.Task[ForkServer | None]") -> bool:
    server = start.result()
    return server is not None and server.alive
