"""One running part: a process in a session of its own, read line by line and ended without leftovers."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from webapp.ops.child import dying_with_parent

LINE_LIMIT = 64 * 1024  # a part that never ends its line cannot fill our memory
KILLED_WAIT = 5.0


class Process:
    """A started program. Make one with `Process.start`."""

    def __init__(
        self, process: asyncio.subprocess.Process, output: int, on_line: Callable[[str], None]
    ) -> None:
        self._process = process
        self._on_line = on_line
        self._reading = asyncio.create_task(self._read(output))
        self.pid = process.pid
        self.started = time.monotonic()

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        cwd: Path | None = None,
        inherit: Sequence[int] = (),
    ) -> "Process":
        """Start `argv`, dying with us, leading its own session; `on_line` gets stdout and stderr."""
        # A pipe of our own: asyncio's `wait` would not return while a grandchild holds its pipe open.
        output, theirs = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *dying_with_parent(argv),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=theirs,
                stderr=asyncio.subprocess.STDOUT,
                env=environment,
                cwd=cwd,
                pass_fds=inherit,
                start_new_session=True,
            )
        except OSError:
            os.close(output)
            raise
        finally:
            os.close(theirs)
        return cls(process, output, on_line)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    async def wait(self) -> int:
        """Wait for its end, sweep what it left in its session, and return the exit status."""
        status = await self._process.wait()
        self.kill()
        # A stranger that inherited the pipe may hold it open: what is written by now is enough.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._reading, timeout=1)
        return status

    def terminate(self) -> None:
        """Ask it to end. Only the leader is asked: what it started is its own to end in order."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """End it and everything in its process group, now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _read(self, output: int) -> None:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(output, "rb", buffering=0)
        )
        try:
            await self._split(reader)
        finally:
            transport.close()

    async def _split(self, reader: asyncio.StreamReader) -> None:
        rest = b""
        while chunk := await reader.read(LINE_LIMIT):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._emit(line)
            if len(rest) >= LINE_LIMIT:
                self._emit(rest)
                rest = b""
        if rest:
            self._emit(rest)

    def _emit(self, line: bytes) -> None:
        self._on_line(line.decode("utf-8", "replace").rstrip("\r"))


def in_words(status: int) -> str:
    """Say how a process ended."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
