"""A runner's process: spawned, spoken to, listened to, ended with all it started.

Start it from the event loop of the main thread: the runner asks the kernel to die with its parent, and the
kernel fires when the *thread* that spawned it ends.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil

from jobs.spec.control import Control
from workers.supervise.lines import LineCutter
from workers.supervise.masking import Masker
from workers.supervise.spool import LINE_LIMIT
from workers.supervise.tail import LogFile

CHUNK = 256 * 2**10
CLOSING = 2.0
"""Seconds to read what a dead runner left in its pipe; a grandchild may hold it open for longer."""
RUNNER = (sys.executable, "-m", "workers.runner")

Listener = Callable[[bytes], None]


class RunnerProcess:
    """Made by `start`. Serves one task at a time; a warm one serves several."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        events: asyncio.StreamReader,
        logs: Sequence[LogFile],
        folder: Path,
    ) -> None:
        self._process = process
        self._listener: Listener | None = None
        self._reading = asyncio.create_task(self._read(events), name=f"events of runner {process.pid}")
        self._ending = asyncio.create_task(process.wait(), name=f"end of runner {process.pid}")
        self.logs = logs
        self.folder = folder
        self.pid = process.pid
        self.tasks_served = 0
        self.idle_since = time.monotonic()

    @classmethod
    async def start(
        cls, folder: Path, *, environment: Mapping[str, str], masker: Masker, program: Sequence[str] = RUNNER
    ) -> Self:
        """Spawn a runner whose own files lie in `folder`, in a session of its own."""
        logs = [LogFile(folder / f"{source}.log", source, masker) for source in ("stdout", "stderr")]
        ours, theirs = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *program,
                *("--events-fd", str(theirs), "--parent", str(os.getpid())),
                stdin=asyncio.subprocess.PIPE,
                stdout=logs[0].descriptor,
                stderr=logs[1].descriptor,
                env=environment,
                cwd=folder,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        remember(folder, process.pid)
        return cls(process, await _reader(ours), logs, folder)

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    @property
    def ended(self) -> "asyncio.Task[int]":
        """Done, with the exit status (negative: the signal), once the process is gone."""
        return self._ending

    def listen(self, listener: Listener | None) -> None:
        """Give every further event line to `listener`; to nobody with None."""
        self._listener = listener

    def tell(self, order: Control) -> None:
        """Send a control line. A runner that is gone hears nothing; its end is noticed elsewhere."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(order.model_dump_json().encode() + b"\n")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the runner alone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it and everything in its session's group, now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def end(self) -> int:
        """Kill it, read what it had said, and return its exit status."""
        self.kill()
        status = await self._ending
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
        if self._process.stdin is not None:
            self._process.stdin.close()
        forget(self.folder)

    async def _read(self, events: asyncio.StreamReader) -> None:
        cutter = LineCutter(LINE_LIMIT)
        while chunk := await events.read(CHUNK):
            for line in cutter.feed(chunk):
                if self._listener is not None:
                    self._listener(line)


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=CHUNK)
    protocol = asyncio.StreamReaderProtocol(reader)
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return reader


def remember(folder: Path, pid: int) -> None:
    """Note pid and start time, so that a later node can tell our runner from a stranger with its pid."""
    with contextlib.suppress(psutil.Error):
        born = psutil.Process(pid).create_time()
        (folder / "process.json").write_text(json.dumps({"pid": pid, "born": born}))


def forget(folder: Path) -> None:
    """Take the note back."""
    (folder / "process.json").unlink(missing_ok=True)
