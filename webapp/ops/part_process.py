"""Runs one part as a process in its own session, reads its output by line and kills its descendants."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from webapp.ops.parent_death import argv_dying_with_parent

# Bounds the memory for a line that never ends.
MAX_LINE_BYTES = 64 * 1024


class PartProcess:
    """A running program. Create it with `start`."""

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
    ) -> "PartProcess":
        """Start `argv` in its own session; it dies with this process. `on_line` gets its output."""
        # Not asyncio's pipe: its `wait` would not return while a grandchild keeps the pipe open.
        output, child_output = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *argv_dying_with_parent(argv),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=child_output,
                stderr=asyncio.subprocess.STDOUT,
                env=environment,
                cwd=cwd,
                pass_fds=inherit,
                # Ctrl-C at the terminal then reaches only this process, which stops the parts in order.
                start_new_session=True,
            )
        except OSError:
            os.close(output)
            raise
        finally:
            # Only the child may hold the writing end: reading ends when the last holder closes it.
            os.close(child_output)
        return cls(process, output, on_line)

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    @property
    def age(self) -> float:
        return time.monotonic() - self.started

    async def wait(self) -> int:
        """Wait for its end, kill the rest of its process group, and return the exit status."""
        status = await self._process.wait()
        self.kill()
        # Another process may have inherited the pipe and keep it open: do not wait for its end.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._reading, timeout=1)
        return status

    def terminate(self) -> None:
        """Send SIGTERM to the leader only: it ends its own children in order."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """Kill it and its process group."""
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
        while chunk := await reader.read(MAX_LINE_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._emit(line)
            if len(rest) >= MAX_LINE_BYTES:
                self._emit(rest)
                rest = b""
        if rest:
            self._emit(rest)

    def _emit(self, line: bytes) -> None:
        self._on_line(line.decode("utf-8", "replace").rstrip("\r"))


def describe_exit(status: int) -> str:
    """Return how a process ended, as it appears in a sentence."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
