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
from workers.supervise.timing import Timing
from workers.system.environment import CODE_ROOT

log = logging.getLogger(__name__)

# Tasks only forward a hint, so a consumer that needs longer to end hangs.
WARM_SHUTDOWN_SECONDS = 3.0
# A consumer that ran for this long started well: the next restart needs no long pause.
HEALTHY_AFTER_SECONDS = 60.0


def consumer_argv(name: str, queues: Sequence[str]) -> tuple[str, ...]:
    """Return the command line for a consumer of `queues`."""
    return (
        *(sys.executable, "-m", "celery", "--quiet", "-A", "workers.app", "worker"),
        # A task only sends a datagram, which needs no process of its own.
        *("--pool", "threads", "--concurrency", "2"),
        *("--queues", ",".join(queues)),
        *("--hostname", f"{name}@%h"),
        # Nothing reads the events of Celery workers: canaries prove that messages are consumed.
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        *("--loglevel", "WARNING"),
    )


class Consumer:
    """Starts and restarts one consumer process.

    Args:
        argv: its command line.
        socket: the node's socket for hints.
        send_canary: sends a canary with this token; returns False while the broker does not answer.
        timing: intervals and time limits.
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
        """Whether the current process has received a canary."""
        self.restarts = 0
        self.pid: int | None = None

    def canary_received(self, token: str) -> None:
        """Note that a canary arrived; outdated tokens are ignored."""
        # An old token proves only that a message arrived late, not that messages arrive now.
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
            if time.monotonic() - started > HEALTHY_AFTER_SECONDS:
                backoff.reset()
            await asyncio.sleep(backoff.next())

    async def _wait_for_broker(self) -> None:
        # Starting a consumer costs seconds of CPU and is useless without a broker.
        backoff = Backoff(self._timing.retry_first, self._timing.retry_limit)
        while not await asyncio.to_thread(self._send_canary, secrets.token_hex(8)):
            # The consumer is not to blame for this time, so it does not count as silence.
            self._last_canary = time.monotonic()
            await asyncio.sleep(backoff.next())

    async def _run_once(self) -> None:
        environment = os.environ | {SOCKET_VARIABLE: str(self._socket), NODE_PID_VARIABLE: str(os.getpid())}
        process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=asyncio.subprocess.DEVNULL,
            env=environment,
            cwd=CODE_ROOT,
            start_new_session=True,  # for `_signal_group`; and Ctrl-C in a terminal must reach the node alone
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
                # Not SIGTERM: a process stopped by SIGSTOP does not handle it.
                _signal_group(process.pid, signal.SIGKILL)
        finally:
            unresponsive.cancel()
            if not ended.done():
                # Shielded: a second cancellation must not leave the process running.
                await asyncio.shield(_end(process, ended))
            self.pid = None

    async def _wait_until_unresponsive(self) -> None:
        missed = self._timing.canaries_missed * self._timing.canary
        # A consumer without a canary so far may still be importing its libraries.
        while self.seconds_silent < (missed if self.proven else max(missed, self._timing.consumer_start)):
            self._token = secrets.token_hex(8)
            if not await asyncio.to_thread(self._send_canary, self._token):
                self._last_canary = time.monotonic()  # the broker is down, so the consumer is not to blame
            await asyncio.sleep(self._timing.canary)


async def _end(process: asyncio.subprocess.Process, ended: "asyncio.Task[int]") -> None:
    _signal_group(process.pid, signal.SIGTERM)
    await asyncio.wait([ended], timeout=WARM_SHUTDOWN_SECONDS)
    if not ended.done():
        _signal_group(process.pid, signal.SIGKILL)
        await ended


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
