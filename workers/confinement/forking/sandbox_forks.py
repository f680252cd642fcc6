"""Starts processes in sandboxes by forking a server that has done the imports."""

import asyncio
import logging
import os
import signal
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import IO

from jobs.messages.fork import ForkIntoSandbox
from workers.confinement.forking import plan_file
from workers.confinement.forking.client import ForkServer
from workers.confinement.sandbox.forked_process import ForkedProcess
from workers.confinement.sandbox.launch import Stream, Streams, spawn
from workers.confinement.sandbox.plan import Plan
from workers.confinement.sandbox.process import Started

log = logging.getLogger(__name__)


class _ForkedUnseen(OSError):
    """A fork has begun to carry out the plan, but its fork server has not reported it."""


@dataclass(frozen=True)
class SandboxForks:
    """Carries out sandbox plans by a fork server, and by a new interpreter if a fork fails.

    Create it in the event loop, and call it in another thread.

    Attributes:
        server: forks by `into_sandbox`.
        timeout: the seconds after which a server that does not answer is killed; `FORK_TIMEOUT` by default.
    """

    server: ForkServer
    timeout: float | None = None
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def __call__(self, plan: Plan, streams: Streams) -> Started:
        """Start the process outside a sandbox. It has no pipe for its standard input.

        Raises:
            OSError: it could not be started, or a process may run whose pid is unknown.
        """
        try:
            return self._fork(plan, streams)
        # A second process would share its user, folders and connection.
        except _ForkedUnseen:
            raise
        except OSError as error:
            log.warning("a sandbox was started without the fork server, which is slower: %s", error)
            return spawn(plan, streams)

    def _fork(self, plan: Plan, streams: Streams) -> ForkedProcess:
        with ExitStack() as lent, ExitStack() as undo:
            output = None
            stdout = streams.stdout
            if stdout == subprocess.PIPE:
                read, stdout = os.pipe()
                output = undo.enter_context(os.fdopen(read, "rb"))
                lent.callback(os.close, stdout)
            stderr = stdout if streams.stderr == subprocess.STDOUT else streams.stderr
            # The server closes its copies after the fork.
            descriptors = [_descriptor(stream, lent) for stream in (streams.stdin, stdout, stderr)]
            file = plan_file.create(plan)
            lent.callback(os.close, file)
            started = self._start(file, (*descriptors, *streams.keep), output)
            process = asyncio.run_coroutine_threadsafe(started, self._loop).result()
            undo.pop_all()
        return process

    async def _start(
        self, file: int, descriptors: tuple[int, ...], output: IO[bytes] | None
    ) -> ForkedProcess:
        request = ForkIntoSandbox(into_sandbox=True).model_dump_json().encode()
        try:
            child = await self.server.fork(request, (file, *descriptors), timeout=self.timeout)
        except OSError as error:
            # A later fork then finds that the plan is claimed, and ends.
            if plan_file.claim(file):
                raise
            raise _ForkedUnseen(f"a process may be in the sandbox without a report: {error}") from error
        try:
            return ForkedProcess(child.pid, child.ended, output)
        except OSError:
            # Another process will carry out the plan.
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            await child.ended
            raise


def _descriptor(stream: Stream, lent: ExitStack) -> int:
    """Return a stream's descriptor."""
    if stream is None or stream == subprocess.PIPE:
        raise ValueError("a fork inherits no streams, and has no pipes but one for its output")
    if stream == subprocess.DEVNULL:
        stream = os.open(os.devnull, os.O_RDWR)
        lent.callback(os.close, stream)
    return stream if isinstance(stream, int) else stream.fileno()
