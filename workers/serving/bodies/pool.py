"""Runs body workers: starts them when they are needed, and replaces those that end."""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from workers.model_process.errors import DeadlineExceeded, Saturated, Unavailable
from workers.model_process.frames import Frame
from workers.serving.versions.child_process import (
    ChildExited,
    ChildFailed,
    ChildProcess,
    child_environment,
)

logger = logging.getLogger("trainyard.serving")

Array = npt.NDArray[Any]
# A request whose worker dies is tried once more, with another worker.
_MAX_TRIES = 2
# The bytes of all requests that wait or are worked on. Many clients with bodies of 200 kB may wait together.
WAITING_BYTES = 256 * 2**20


class BodyWorkerCommand:
    """The command line for body workers."""

    def arguments(self, descriptor: int) -> list[str]:
        """Return the command line for a worker with the socket `descriptor`."""
        command = [sys.executable, "-m", "workers.serving.bodies"]
        return [*command, "--socket", str(descriptor), "--parent", str(os.getpid())]

    def variables(self) -> dict[str, str]:
        """Return the environment for a worker."""
        return child_environment()


class BodyWorkers:
    """At most `count` worker processes, each with one request at a time."""

    def __init__(self, count: int, waiting_bytes: int = WAITING_BYTES) -> None:
        self._limit = waiting_bytes
        self._slots = asyncio.Semaphore(count)
        self._idle: list[ChildProcess] = []
        self._all: set[ChildProcess] = set()
        self._waiting_bytes = 0

    async def run(self, header: dict[str, Any], tensors: Sequence[Array], deadline: float) -> Frame:
        """Have a worker answer one request.

        Args:
            header: the operation and its fields.
            tensors: its arrays.
            deadline: monotonic time; then the worker is killed.

        Raises:
            ChildFailed: the worker refused it; `kind` is the HTTP status.
            Saturated: too many bodies wait.
            DeadlineExceeded: the deadline has passed.
            Unavailable: two workers ended.
        """
        size = sum(tensor.nbytes for tensor in tensors)
        # A single body has its own limit.
        if self._waiting_bytes and self._waiting_bytes + size > self._limit:
            raise Saturated("Too many large bodies wait to be parsed", retry_after=1)
        self._waiting_bytes += size
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())), self._slots:
                for _ in range(_MAX_TRIES):
                    try:
                        return await self._try(header, tensors)
                    except ChildExited:
                        logger.warning("a body worker ended while it worked")
        except TimeoutError:
            raise DeadlineExceeded("Deadline exceeded") from None
        finally:
            self._waiting_bytes -= size
        raise Unavailable("The process that reads large bodies ended", retry_after=1)

    async def _try(self, header: dict[str, Any], tensors: Sequence[Array]) -> Frame:
        worker = await self._take()
        answered = False
        try:
            frame = await worker.request(header, tensors)
            answered = True
        # It has refused the body, and works on.
        except ChildFailed:
            answered = True
            raise
        finally:
            if answered and not worker.ended.done():
                self._idle.append(worker)
            else:
                # After a timeout it would still work on a body that no client waits for.
                worker.kill()
                self._all.discard(worker)
                await asyncio.shield(worker.stop())
        return frame

    async def _take(self) -> ChildProcess:
        while self._idle:
            # The last one: its memory is most likely in the caches.
            worker = self._idle.pop()
            if not worker.ended.done():
                return worker
            self._all.discard(worker)
            await worker.stop()
        try:
            worker = await ChildProcess.spawn(BodyWorkerCommand())
        except OSError as error:  # too little memory, or too many processes or open files
            logger.warning("a body worker could not be started: %s", error)
            raise Unavailable("The process that reads large bodies could not start", retry_after=1) from None
        self._all.add(worker)
        return worker

    async def prepare(self) -> None:
        """Start a first worker, so that the first large body does not wait for it."""
        try:
            worker = await ChildProcess.spawn(BodyWorkerCommand())
        except OSError as error:
            logger.warning("a body worker could not be started: %s", error)
            return
        self._all.add(worker)
        self._idle.append(worker)

    async def close(self) -> None:
        """End all workers."""
        workers, self._all = self._all, set()
        for worker in workers:
            worker.kill()
            await worker.stop()
