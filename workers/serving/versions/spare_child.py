"""Keeps one spare child whose imports are done, which saves the slowest part of a load or restart."""

import asyncio
import logging

from workers.serving.versions.child_process import ChildCommand, ChildProcess

logger = logging.getLogger("trainyard.serving")


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
        if self._starting is not None:
            await asyncio.shield(self._starting)
        spare, self._spare = self._spare, None
        if spare is not None and not spare.ended.done():
            return spare
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
            self._spare.kill()  # during its imports it would notice the closed connection only after seconds
            await self._spare.stop()
