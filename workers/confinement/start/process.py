"""A process with user code in its sandbox, from its start to its end."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from jobs.messages.sandbox import LevelState, SandboxRequest
from workers.confinement.sandbox import usage
from workers.confinement.sandbox.launch import Starter, Streams, launch
from workers.confinement.sandbox.process import SandboxProcess
from workers.confinement.sandbox.watch import Watch
from workers.confinement.start.files import ProcessFiles
from workers.confinement.start.output import OutputLines
from workers.confinement.start.threads import follow_in_thread
from workers.system.exit_status import describe_status


class ProcessStart(NamedTuple):
    """How a process is started.

    Attributes:
        request: its sandbox.
        command: the program and its arguments.
        files: its folder and its user.
        streams: its streams.
        starter: forks it, or starts a new interpreter.
        lines: get its output, if that is a pipe.
        watch: returns its sandbox's watch, which gets also the folders in which it may write.
    """

    request: SandboxRequest
    command: Sequence[str]
    files: ProcessFiles
    streams: Streams
    starter: Starter
    lines: OutputLines | None = None
    watch: Callable[[SandboxProcess, Iterable[str]], Watch] = Watch


@dataclass
class CodeProcess:
    """A started process. Its files are not part of it.

    Attributes:
        process: its processes.
        watch: measures them, and ends them above their limits.
        lines: its output; None if that is in files.
    """

    process: SandboxProcess
    watch: Watch
    lines: OutputLines | None

    def pids(self) -> list[int]:
        """Return the processes inside the sandbox; none if they cannot be found, for which it is ended."""
        try:
            return self.process.processes()
        except usage.Unmeasurable:
            return []

    def follow(self) -> "asyncio.Future[int]":
        """Return the exit status, once it has ended. Until then, no other process gets its pid."""
        process = self.process
        return follow_in_thread(f"end of {process.pid}", process.wait_unreaped, process.wait)

    def cause(self, subject: str, status: int) -> str:
        """Return why it has ended, for people.

        Args:
            subject: the first words, such as "its process".
            status: its exit status.
        """
        if self.watch.ended is not None:
            return self.watch.ended.message
        last = "" if self.lines is None else self.lines.last
        return f"{subject} ended {describe_status(status)}" + (f"; its last line: {last}" if last else "")

    def read_rest(self) -> None:
        """Read the rest of an ended process's output. Call it in a thread."""
        self.watch.stop()
        if self.lines is not None:
            self.lines.end()

    def close(self) -> None:
        """End all its processes, read the rest of their output, and delete their temporary folder.

        Call it in a thread.
        """
        self.process.kill()
        try:
            self.read_rest()
        finally:
            self.process.close()


def start_process(start: ProcessStart, states: Sequence[LevelState]) -> CodeProcess:
    """Start a process at the strongest level that the machine offers, and watch it.

    Call it in a thread that lives as long as the process: without a fork, the process ends with the thread.

    Args:
        start: the process.
        states: this machine's levels.

    Raises:
        SandboxRefused: no level is strong enough.
        OSError: it could not be started.
    """
    with ExitStack() as undo:
        process = launch(
            start.request, start.command, states, owner=start.files.owner, streams=start.streams,
            scratch=start.files.scratch, start=start.starter,
        )  # fmt: skip
        undo.callback(process.close)
        watch = start.watch(process, start.request.writable).start()
        if start.lines is not None:
            assert process.stdout is not None  # noqa: S101  it is a pipe
            watch.read(process.stdout, start.lines.feed)
        undo.pop_all()
    return CodeProcess(process, watch, start.lines)
