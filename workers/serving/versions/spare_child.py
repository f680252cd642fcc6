"""Keeps one spare child with its imports done, so that a load or a restart skips the slowest part."""

import asyncio
import logging

from workers.serving.versions.link import ChildCommand, ChildLink

logger = logging.getLogger("trainyard.serving")


class Nursery:
    """Hands out children; grows the next spare only once the last one is loaded, to leave it the CPU."""

    def __init__(self, command: ChildCommand) -> None:
        self._command = command
        self._spare: ChildLink | None = None
        self._growing: asyncio.Task[None] | None = None
        self._closed = False

    async def take(self) -> ChildLink:
        """Return a child without a model: the spare if it lives, else a new one."""
        if self._growing is not None:
            await asyncio.shield(self._growing)
        spare, self._spare = self._spare, None
        if spare is not None and not spare.gone.done():
            return spare
        return await ChildLink.spawn(self._command)

    def grow(self) -> None:
        """Start the next spare if there is none."""
        lives = self._spare is not None and not self._spare.gone.done()
        if lives or self._closed or self._growing is not None:
            return
        self._growing = asyncio.create_task(self._grow())

    async def _grow(self) -> None:
        try:
            self._spare = await ChildLink.spawn(self._command)
        except OSError as error:
            logger.warning("no spare child: %s", error)
        finally:
            self._growing = None

    async def close(self) -> None:
        """End the spare."""
        self._closed = True
        if self._growing is not None:
            await self._growing
        if self._spare is not None:
            self._spare.kill()  # deep in its imports it would hear of a closed connection only seconds later
            await self._spare.stop()
