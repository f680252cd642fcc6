"""Keeps one spare child whose imports are done, which saves the slowest part of a load or restart."""

import asyncio
import logging

from workers.serving.versions.child_process import ChildCommand, ChildProcess

logger = logging.getLogger("trainyard.serving")
# A spare that has sent nothing for this long is stopped.
_SILENT_SECONDS = 2.0


class SpareChild:
    """Provides children.

    The next spare is started only after the previous one has loaded, to leave it the CPU.
    """

    def __init__(self, command: ChildCommand) -> None:
        self._command = command
        self._spare: ChildProcess | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closed = False

    async def take(self) -> ChildProcess:
        """Return a child without a model: the spare if it is alive, else a new one."""
        # Shielded: a cancelled load must not end the start, from which `close` expects a child.
        if self._starting is not None:
            await asyncio.shield(self._starting)
        spare, self._spare = self._spare, None
        if spare is not None and not spare.ended.done():
            if not spare.has_imported or spare.silent_seconds < _SILENT_SECONDS:
                return spare
            logger.warning("the spare child %d does not respond; it is replaced", spare.pid)
            spare.kill()
            await spare.stop()
        return await ChildProcess.spawn(self._command)

    def prepare(self) -> None:
        """Start the next spare in the background if there is none."""
        alive = self._spare is not None and not self._spare.ended.done()
        if alive or self._closed or self._starting is not None:
            return
        self._starting = asyncio.create_task(self._start())

    async def _start(self) -> None:
        try:
            self._spare = await ChildProcess.spawn(self._command)
        except OSError as error:
            logger.warning("a spare child could not be started: %s", error)
        finally:
            self._starting = None

    async def close(self) -> None:
        self._closed = True
        if self._starting is not None:
            await self._starting
        if self._spare is not None:
            # During its imports it would notice the closed connection only after seconds.
            self._spare.kill()
            await self._spare.stop()
