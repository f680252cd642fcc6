"""The message consumer: a Celery worker as a child process, replaced when it dies or goes deaf.

A pid proves nothing: after a reconnect a consumer may live and hear nothing. Only a message that comes
through does, so the node sends canaries to its own queue. No runner notices any of this.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from workers.node.hints import NODE_PID_VARIABLE, SOCKET_VARIABLE
from workers.supervise.backoff import Backoff
from workers.supervise.environment import CODE
from workers.supervise.timing import Timing

log = logging.getLogger(__name__)

WARM_SHUTDOWN = 3.0
HEALTHY_AFTER = 60.0


def consumer_argv(name: str, queues: Sequence[str]) -> tuple[str, ...]:
    """Return the command line of a consumer of `queues`."""
    return (
        *(sys.executable, "-m", "celery", "--quiet", "-A", "workers.app", "worker"),
        *("--pool", "threads", "--concurrency", "2"),
        *("--queues", ",".join(queues)),
        *("--hostname", f"{name}@%h"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        *("--loglevel", "WARNING"),
    )


class Consumer:
    """Keeps one consumer running. `send_canary` returns False while the broker itself does not answer."""

    def __init__(
        self, argv: Sequence[str], *, socket: Path, send_canary: Callable[[str], bool], timing: Timing
    ) -> None:
        self._argv = argv
        self._socket = socket
        self._send_canary = send_canary
        self._timing = timing
        self._heard_at = time.monotonic()
        self._canary = ""
        self.proven = False
        self.restarts = 0
        self.pid: int | None = None

    def heard(self, token: str) -> None:
        """A canary came through."""
        if token == self._canary:
            self._heard_at = time.monotonic()
            self.proven = True

    @property
    def silence(self) -> float:
        """Seconds since the last canary came through, or since the start."""
        return time.monotonic() - self._heard_at

    async def run(self) -> None:
        """Start it again and again until cancelled, each time once the broker answers."""
        backoff = Backoff(self._timing.retry_first, self._timing.retry_limit)
        while True:
            await self._until_broker()
            born = time.monotonic()
            await self._run_once()
            self.restarts += 1
            if time.monotonic() - born > HEALTHY_AFTER:
                backoff.reset()
            await asyncio.sleep(backoff.next())

    async def _until_broker(self) -> None:
        """Wait for a broker: without one a consumer costs seconds of CPU to start and has nothing to hear."""
        backoff = Backoff(self._timing.retry_first, self._timing.retry_limit)
        while not await asyncio.to_thread(self._send_canary, secrets.token_hex(8)):
            self._heard_at = time.monotonic()
            await asyncio.sleep(backoff.next())

    async def _run_once(self) -> None:
        environment = os.environ | {SOCKET_VARIABLE: str(self._socket), NODE_PID_VARIABLE: str(os.getpid())}
        process = await asyncio.create_subprocess_exec(
            *self._argv, stdin=asyncio.subprocess.DEVNULL, env=environment, cwd=CODE, start_new_session=True
        )
        self.pid = process.pid
        self._heard_at, self.proven = time.monotonic(), False
        ended = asyncio.create_task(process.wait())
        deaf = asyncio.create_task(self._until_deaf())
        try:
            await asyncio.wait([ended, deaf], return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                log.warning("the message consumer ended with status %s; starting another one", ended.result())
            else:
                log.warning("the message consumer hears nothing for %.0f s; replacing it", self.silence)
                _signal_group(process.pid, signal.SIGKILL)  # a stopped one would not hear SIGTERM
        finally:
            deaf.cancel()
            if not ended.done():
                await asyncio.shield(_end(process, ended))
            self.pid = None

    async def _until_deaf(self) -> None:
        while self.silence < self._patience:
            self._canary = secrets.token_hex(8)
            if not await asyncio.to_thread(self._send_canary, self._canary):
                self._heard_at = time.monotonic()  # nobody could hear anything: not the consumer's fault
            await asyncio.sleep(self._timing.canary)

    @property
    def _patience(self) -> float:
        missed = self._timing.canaries_missed * self._timing.canary
        return missed if self.proven else max(missed, self._timing.consumer_start)


async def _end(process: asyncio.subprocess.Process, ended: "asyncio.Task[int]") -> None:
    _signal_group(process.pid, signal.SIGTERM)
    await asyncio.wait([ended], timeout=WARM_SHUTDOWN)
    if not ended.done():
        _signal_group(process.pid, signal.SIGKILL)
        await ended


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
