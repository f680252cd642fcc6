"""Starts model children by forking one process that has done their imports."""

import asyncio
import logging

from workers.confinement.forking.client import ForkServer, can_fork
from workers.serving.versions.child_process import ChildCommand, ChildProcess
from workers.system.kernel import become_subreaper

logger = logging.getLogger("trainyard.serving")
FORK_SECONDS = 15.0
"""A fork takes 0.02 s. A fork server that needs longer than this is replaced.

On a machine with eight runnable processes for each core it took more than 5 s. Replacing it there costs more
than waiting: another import, and a child that shares no memory.
"""


class ChildStarter:
    """Starts children.

    A fork is ready for a model at once, and shares the libraries' memory with all others. Children
    belong to this process and survive their fork server; the next start then makes a new one. Where there is
    none, a child is a new interpreter, which is slower.
    """

    def __init__(self, command: ChildCommand, *, forks: bool = True) -> None:
        self._command, self._forks = command, forks
        self._starting: asyncio.Task[ForkServer | None] | None = None

    def prepare(self) -> None:
        """Start the fork server in the background."""
        self._starting = asyncio.create_task(self._start_server())

    async def start(self) -> ChildProcess:
        """Return a new child without a model.

        Raises:
            OSError: it could not be started.
        """
        server = await self.fork_server()
        if server is not None:
            try:
                return await ChildProcess.fork(server, FORK_SECONDS)
            except OSError as error:
                logger.warning("a child could not be forked, and starts as a new interpreter: %s", error)
        return await ChildProcess.spawn(self._command, own_session=False)

    async def close(self) -> None:
        """End the fork server."""
        if self._starting is None:
            return
        self._starting.cancel()  # no effect once it is done
        await asyncio.wait({self._starting})
        if not self._starting.cancelled() and (server := self._starting.result()) is not None:
            await server.end()

    async def fork_server(self) -> ForkServer | None:
        """Return the fork server once its imports are done; None if it could not be started."""
        starting = self._starting
        if starting is None or (starting.done() and not _has_server(starting)):
            self.prepare()
        assert self._starting is not None  # noqa: S101
        # Shielded: a cancelled load must not end the start, for which others may wait.
        return await asyncio.shield(self._starting)

    async def _start_server(self) -> ForkServer | None:
        if not (self._forks and can_fork()):
            return None
        try:
            # Else the kernel would give the children to another process than this one.
            become_subreaper()
            server = await ForkServer.spawn(
                self._command.fork_server(), variables=self._command.variables(), own_session=False
            )
            await server.imported()
        except OSError as error:
            logger.warning("children start without a fork server, which is slower: %s", error)
            return None
        return server


def _has_server(start: asyncio.Task[ForkServer | None]) -> bool:
    server = start.result()
    return server is not None and server.alive
