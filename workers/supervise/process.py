"""A runner's process: started, spoken to, listened to, ended with all it started."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Self, cast

from jobs.contracts.control import Control
from workers.supervise.launch import Child, Ends, Launcher
from workers.supervise.lines import LineCutter
from workers.supervise.masking import Masker
from workers.supervise.notes import forget, remember
from workers.supervise.spool import LINE_LIMIT
from workers.supervise.tail import LogFile

CHUNK = 256 * 2**10
CLOSING = 2.0
"""Seconds to read what a dead runner left in its pipe; a grandchild may hold it open for longer."""

Listener = Callable[[bytes], None]


class RunnerProcess:
    """Made by `start`. Serves one task at a time; a warm one serves several."""

    def __init__(
        self,
        child: Child,
        control: asyncio.WriteTransport,
        events: asyncio.StreamReader,
        logs: Sequence[LogFile],
        folder: Path,
    ) -> None:
        self._control = control
        self._listener: Listener | None = None
        self._reading = asyncio.create_task(self._read(events), name=f"events of runner {child.pid}")
        self.logs = logs
        self.folder = folder
        self.pid = child.pid
        self.ended = child.ended
        """Done, with the exit status (negative: the signal), once the process is gone."""
        self.tasks_served = 0
        self.idle_since = time.monotonic()

    @classmethod
    async def start(
        cls, folder: Path, launcher: Launcher, *, environment: Mapping[str, str], masker: Masker
    ) -> Self:
        """Start a runner whose own files lie in `folder`, in a session of its own.

        Raises:
            OSError: it could not be started.
        """
        logs = [LogFile(folder / f"{source}.log", source, masker) for source in ("stdout", "stderr")]
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ends = Ends(theirs_in, logs[0].descriptor, logs[1].descriptor, theirs_out)
        with contextlib.ExitStack() as undo:
            for file in logs:
                undo.callback(file.close)
            control, events = (
                undo.enter_context(_own(ours_in, "wb")),
                undo.enter_context(_own(ours_out, "rb")),
            )
            try:
                child = await launcher.launch(folder, environment, ends)
            finally:
                os.close(theirs_in)
                os.close(theirs_out)
            undo.callback(_kill_session, child.pid)
            remember(folder, child.pid)
            made = cls(child, await _writer(control), await _reader(events), logs, folder)
            undo.pop_all()
        return made

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return not self.ended.done()

    def listen(self, listener: Listener | None) -> None:
        """Give every further event line to `listener`; to nobody with None."""
        self._listener = listener

    def tell(self, order: Control) -> None:
        """Send a control line. A runner that is gone hears nothing; its end is noticed elsewhere."""
        if not self._control.is_closing():
            self._control.write(order.model_dump_json().encode() + b"\n")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the runner alone."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it and everything in its session's group, now."""
        _kill_session(self.pid)

    async def end(self) -> int:
        """Kill it, read what it had said, and return its exit status."""
        self.kill()
        status = await asyncio.shield(self.ended)
        self.kill()  # what it spawned between our signal and its end
        await self.heard_all()
        return status

    async def heard_all(self) -> None:
        """Wait until the pipe of an ended runner is read to its end."""
        await asyncio.wait({self._reading}, timeout=CLOSING)

    def dispose(self) -> None:
        """Give its files back; the process must have ended."""
        self._reading.cancel()
        for log in self.logs:
            log.close()
        self._control.close()
        forget(self.folder)

    async def _read(self, events: asyncio.StreamReader) -> None:
        cutter = LineCutter(LINE_LIMIT)
        while chunk := await events.read(CHUNK):
            for line in cutter.feed(chunk):
                if self._listener is not None:
                    self._listener(line)


def _own(descriptor: int, mode: str) -> BinaryIO:
    return cast("BinaryIO", os.fdopen(descriptor, mode, buffering=0))


async def _writer(pipe: BinaryIO) -> asyncio.WriteTransport:
    transport, _ = await asyncio.get_running_loop().connect_write_pipe(asyncio.BaseProtocol, pipe)
    return transport


async def _reader(pipe: BinaryIO) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=CHUNK)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return reader


def _kill_session(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
