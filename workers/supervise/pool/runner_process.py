"""Starts a runner process, sends it control lines, reads its events, and kills it with its descendants."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Self, cast

from jobs.messages.control import Control
from workers.confinement.forking.client import Child
from workers.confinement.start.files import ProcessFiles
from workers.supervise.events.log_file import LogFile
from workers.supervise.events.spool import MAX_LINE_BYTES
from workers.supervise.pool.launcher import Launcher, RunnerDescriptors, RunnerStart
from workers.supervise.pool.runner_sandbox import Sandbox, SandboxedChild
from workers.system.line_splitter import LineSplitter
from workers.system.pid_file import remove_pid_file, write_pid_file
from workers.system.secret_masking import SecretMasker
from workers.system.usage import ProcessTree

CHUNK_BYTES = 256 * 2**10
# The time to read the pipe of a dead runner to its end. A program that it started may keep the pipe open.
READ_TIMEOUT_SECONDS = 2.0
# A pause may end early, because the run was asked to end or another task has begun.
LONGEST_WAIT_SECONDS = 0.25
# Less than the margin of a lease. A program that starts processes faster than they are stopped is ended.
SUSPEND_SECONDS = 1.0

Listener = Callable[[bytes], None]
Pause = Callable[[], float]


class RunnerProcess:
    """Serves one task after another. Create it with `start`.

    For each task, call `set_listener` before `send`. At the end, call `end`, close its sandbox if it has one,
    then call `close`, and close its `files`.
    """

    def __init__(
        self,
        child: Child,
        control: asyncio.WriteTransport,
        events: asyncio.StreamReader,
        logs: Sequence[LogFile],
        files: ProcessFiles,
    ) -> None:
        self._control = control
        self._listener: Listener | None = None
        self._pause: Pause = _no_pause
        self._reading = asyncio.create_task(self._read(events), name=f"events of runner {child.pid}")
        self.logs = logs
        self.files = files
        """Its folder and its user, which are closed after it."""
        self.folder = files.folder
        self.access = files.access
        """Its access to files if it has a user of its own; None if it has the user of this process."""
        self.sandbox: Sandbox | None = _sandbox_of(child)
        self.pid = child.pid
        self.ended = child.ended
        """Gets the exit status, negative for a signal, once the process has ended."""
        self.tasks_served = 0
        self.idle_since = time.monotonic()

    @classmethod
    async def start(
        cls,
        files: ProcessFiles,
        launcher: Launcher,
        *,
        start: RunnerStart,
        masker: SecretMasker,
    ) -> Self:
        """Start a runner in its own session. Its logs and its pid file are in its folder.

        Raises:
            OSError: it could not be started.
        """
        loop, folder = asyncio.get_running_loop(), files.folder
        with contextlib.ExitStack() as undo:
            logs = [
                undo.enter_context(contextlib.closing(LogFile(folder / f"{source}.log", source, masker)))
                for source in ("stdout", "stderr")
            ]
            # The runner has its own copies. While these are open, the event pipe would not end with it.
            with contextlib.ExitStack() as passed_on:
                control_read, control_write = os.pipe()
                passed_on.callback(os.close, control_read)
                control_pipe = undo.enter_context(_open(control_write, "wb"))
                events_read, events_write = os.pipe()
                passed_on.callback(os.close, events_write)
                event_pipe = undo.enter_context(_open(events_read, "rb"))
                descriptors = RunnerDescriptors(
                    control_read,
                    logs[0].descriptor,
                    logs[1].descriptor,
                    events_write,
                    lambda: sum(log.printed for log in logs),
                )
                child = await launcher.launch(start, descriptors)
            sandbox = _sandbox_of(child)
            undo.callback(_kill_session, child.pid) if sandbox is None else undo.callback(sandbox.close)
            write_pid_file(folder, child.pid)
            control, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, control_pipe)
            events = asyncio.StreamReader(limit=CHUNK_BYTES)
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(events), event_pipe)
            runner = cls(child, control, events, logs, files)
            undo.pop_all()
        return runner

    @property
    def alive(self) -> bool:
        return not self.ended.done()

    @property
    def work_folder(self) -> Path:
        """The folder in which the runner may write."""
        if self.sandbox is not None:
            return self.sandbox.work
        return self.folder if self.access is None else self.access.home

    def tree(self) -> ProcessTree:
        """Return a new measurement for its processes; with a sandbox, for those inside.

        The others may be forks that share most memory with it.
        """
        return ProcessTree(self.pid, None if self.sandbox is None else self.sandbox.pids)

    def set_listener(self, listener: Listener | None, pause: Pause | None = None) -> None:
        """Pass every further event line to `listener`; None discards them.

        Args:
            listener: called with each line.
            pause: returns for how many seconds no further line is read. A runner that sends more meanwhile
                waits in its writes to the pipe.
        """
        self._listener, self._pause = listener, pause or _no_pause

    def send(self, control: Control) -> None:
        """Send a control line. A runner that has ended does not receive it; `ended` reports that."""
        if not self._control.is_closing():
            self._control.write(control.model_dump_json().encode() + b"\n")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the runner alone."""
        if self.sandbox is not None:
            self.sandbox.process.send_signal(number)
        elif self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def suspend(self) -> bool:
        """Stop all of the runner's processes, without their consent; return whether all have stopped.

        Not in a thread: those that copy files may be busy for longer than the lease lasts.
        """
        stopped: set[int] = set()
        deadline = time.monotonic() + SUSPEND_SECONDS
        # Until a round finds no other process: one that was not stopped yet may have started some.
        while new := [pid for pid in self.tree().pids() if pid not in stopped]:
            if time.monotonic() > deadline or not all(_send(pid, signal.SIGSTOP) for pid in new):
                return False
            stopped.update(new)
        return True

    def resume(self) -> None:
        """Let the runner's stopped processes continue."""
        for pid in self.tree().pids():
            _send(pid, signal.SIGCONT)

    async def end(self) -> int:
        """Kill the runner, read its remaining events, and return its exit status."""
        if self.sandbox is not None:
            await asyncio.to_thread(self.sandbox.process.kill)
            status = await asyncio.shield(self.ended)
        else:
            _kill_session(self.pid)
            status = await asyncio.shield(self.ended)
            # Once more, for processes that it started before the first signal took effect.
            _kill_session(self.pid)
        await self.wait_until_read()
        return status

    async def wait_until_read(self) -> None:
        """Wait until an ended runner's event pipe is read to its end."""
        await asyncio.wait({self._reading}, timeout=READ_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Close its files. The process must have ended."""
        self._reading.cancel()
        for log in self.logs:
            log.close()
        self._control.close()
        remove_pid_file(self.folder)

    async def _read(self, events: asyncio.StreamReader) -> None:
        splitter = LineSplitter(MAX_LINE_BYTES)
        while chunk := await events.read(CHUNK_BYTES):
            for line in splitter.feed(chunk):
                if self._listener is not None:
                    self._listener(line)
                # The end of the runner ends a pause: the rest of its lines is then read at once.
                while self.alive and (seconds := self._pause()) > 0:
                    await asyncio.wait({self.ended}, timeout=min(seconds, LONGEST_WAIT_SECONDS))


def _sandbox_of(child: Child) -> Sandbox | None:
    return child.sandbox if isinstance(child, SandboxedChild) else None


def _no_pause() -> float:
    return 0.0


def _open(descriptor: int, mode: str) -> BinaryIO:
    return cast("BinaryIO", os.fdopen(descriptor, mode, buffering=0))


def _send(pid: int, number: signal.Signals) -> bool:
    """Send a signal; return False if that is not permitted. A process that has ended needs none."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _kill_session(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
