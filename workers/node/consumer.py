"""Runs the message consumer, a Celery worker in a child process, and replaces it when it stops consuming.

A living process is no proof: after a reconnect a Celery worker may run without receiving anything. The node
therefore sends canary messages to its own queue and restarts the consumer when they do not arrive. Runners
are not affected by a restart.
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
from workers.supervise.environment import CODE_ROOT
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
    """Starts and restarts one consumer process.

    `send_canary` returns False while the broker does not answer.
    """

    def __init__(
        self, argv: Sequence[str], *, socket: Path, send_canary: Callable[[str], bool], timing: Timing
    ) -> None:
        self._argv = argv
        self._socket = socket
        self._send_canary = send_canary
        self._timing = timing
        self._last_canary = time.monotonic()
        self._token = ""
        self.proven = False
        self.restarts = 0
        self.pid: int | None = None

    def canary_received(self, token: str) -> None:
        """Note that a canary arrived; outdated tokens are ignored."""
        if token == self._token:
            self._last_canary = time.monotonic()
            self.proven = True

    @property
    def seconds_silent(self) -> float:
        """Seconds since the last canary arrived, or since the start."""
        return time.monotonic() - self._last_canary

    async def run(self) -> None:
        """Start the consumer whenever it ended and the broker answers, until cancelled."""
        backoff = Backoff(self._timing.retry_first, self._timing.retry_limit)
        while True:
            await self._wait_for_broker()
            started = time.monotonic()
            await self._run_once()
            self.restarts += 1
            if time.monotonic() - started > HEALTHY_AFTER:
                backoff.reset()
            await asyncio.sleep(backoff.next())

    async def _wait_for_broker(self) -> None:
        """Wait for the broker: starting a consumer costs seconds of CPU and is useless without one."""
        backoff = Backoff(self._timing.retry_first, self._timing.retry_limit)
        while not await asyncio.to_thread(self._send_canary, secrets.token_hex(8)):
            self._last_canary = time.monotonic()
            await asyncio.sleep(backoff.next())

    async def _run_once(self) -> None:
        environment = os.environ | {SOCKET_VARIABLE: str(self._socket), NODE_PID_VARIABLE: str(os.getpid())}
        process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=asyncio.subprocess.DEVNULL,
            env=environment,
            cwd=CODE_ROOT,
            start_new_session=True,
        )
        self.pid = process.pid
        self._last_canary, self.proven = time.monotonic(), False
        ended = asyncio.create_task(process.wait())
        unresponsive = asyncio.create_task(self._wait_until_unresponsive())
        try:
            await asyncio.wait([ended, unresponsive], return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                log.warning("the message consumer ended with status %s; restarting it", ended.result())
            else:
                log.warning(
                    "the message consumer received no message for %.0f s; replacing it", self.seconds_silent
                )
                _signal_group(
                    process.pid, signal.SIGKILL
                )  # a process stopped by SIGSTOP does not handle SIGTERM
        finally:
            unresponsive.cancel()
            if not ended.done():
                await asyncio.shield(_end(process, ended))
            self.pid = None

    async def _wait_until_unresponsive(self) -> None:
        while self.seconds_silent < self._canary_timeout:
            self._token = secrets.token_hex(8)
            if not await asyncio.to_thread(self._send_canary, self._token):
                self._last_canary = time.monotonic()  # the broker is down, so the consumer is not to blame
            await asyncio.sleep(self._timing.canary)

    @property
    def _canary_timeout(self) -> float:
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
