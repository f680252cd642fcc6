"""Runs a program: reads its output, ends it on request, and ends the processes that it leaves behind."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal, NamedTuple

from workers.engine.scripts.lines import Lines
from workers.system.kernel import become_subreaper

Stream = Literal["stdout", "stderr"]
MAX_OUTPUT_BYTES = 64 * 2**20
"""The most bytes that a program may print, on both streams together."""
GRACE_SECONDS = 10.0
"""Time from SIGTERM until a program is killed. A worker waits longer for its runner."""
DRAIN_SECONDS = 2.0
"""How long the output of a program that has ended is read, if other processes keep it open."""
POLL_SECONDS = 0.1
SAME_SIGNAL_SECONDS = 1.0
"""After a program's end by SIGTERM. The signal may have been sent to all processes of the service."""
_CHUNK_BYTES = 256 * 2**10


class Ended(NamedTuple):
    """How a program ended.

    Attributes:
        status: its exit status; if a signal ended it, the signal's number, negative.
        was_asked: whether it was asked to end.
        was_killed: whether it ignored SIGTERM.
        printed_too_much: whether it was ended because it printed more than `MAX_OUTPUT_BYTES`.
        left_behind: how many processes it left behind that were ended.
    """

    status: int
    was_asked: bool
    was_killed: bool
    printed_too_much: bool
    left_behind: int


class Program:
    """One program run in its own process group.

    Args:
        command: the program and its arguments.
        folder: its working folder.
        environment: all its variables.
        on_line: called with each line and the stream from which it comes.
        on_tick: called several times a second; returns whether the program must end.
        grace: seconds from SIGTERM to SIGKILL.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        on_line: Callable[[Stream, bytes], None],
        on_tick: Callable[[], bool],
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._command = command
        self._folder = folder
        self._environment = environment
        self._on_line = on_line
        self._on_tick = on_tick
        self._grace = grace
        self._printed = 0
        self._asked_at: float | None = None
        self._was_killed = False
        self._printed_too_much = False

    def run(self) -> Ended:
        """Run it to its end.

        Raises:
            OSError: it cannot be started.
        """
        adopt_orphans()
        others = frozenset(descendants(os.getpid()))
        process = subprocess.Popen(  # noqa: S603  without a shell
            self._command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        try:
            self._follow(process)
        finally:
            # An error of `on_line` ends the program too.
            kill_group(process)
            status = process.wait()
            left = end_descendants(except_for=others)
            for stream in _streams(process).values():
                stream.close()
        asked = self._asked_at is not None or (status == -signal.SIGTERM and self._is_asked_now())
        return Ended(status, asked, self._was_killed, self._printed_too_much, left)

    def _is_asked_now(self) -> bool:
        """Return whether the program ended by a signal that asks this process, too, to end."""
        deadline = time.monotonic() + SAME_SIGNAL_SECONDS
        while not self._on_tick():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _follow(self, process: "subprocess.Popen[bytes]") -> None:
        lines: dict[Stream, Lines] = {"stdout": Lines(), "stderr": Lines()}
        with selectors.DefaultSelector() as selector:
            for stream, pipe in _streams(process).items():
                selector.register(pipe, selectors.EVENT_READ, stream)
            ended_at: float | None = None
            while selector.get_map():
                ready = selector.select(POLL_SECONDS)
                for key, _ in ready:
                    if not self._read(key.fd, key.data, lines[key.data]):
                        selector.unregister(key.fileobj)
                self._watch(process)
                if process.poll() is not None:
                    now = time.monotonic()
                    # A process that it has started may keep the streams open.
                    ended_at = now if ended_at is None else ended_at
                    if not ready or now - ended_at > DRAIN_SECONDS:
                        break
            for stream, rest in lines.items():
                for line in rest.end():
                    self._on_line(stream, line)
        # It may have closed its streams, and work on.
        while process.poll() is None:
            self._watch(process)
            time.sleep(POLL_SECONDS)

    def _read(self, descriptor: int, stream: Stream, lines: Lines) -> bool:
        """Read from a stream, and pass on its whole lines. Return whether it has not ended."""
        chunk = os.read(descriptor, _CHUNK_BYTES)
        self._printed += len(chunk)
        self._printed_too_much = self._printed > MAX_OUTPUT_BYTES
        for line in lines.feed(chunk) if chunk else ():
            self._on_line(stream, line)
        return bool(chunk)

    def _watch(self, process: "subprocess.Popen[bytes]") -> None:
        """End the program if it is asked to, or has printed too much."""
        should_end = self._on_tick()
        if self._printed_too_much:
            kill_group(process)
        elif should_end and self._asked_at is None:
            self._asked_at = time.monotonic()
            signal_group(process, signal.SIGTERM)
        elif self._asked_at is not None and time.monotonic() - self._asked_at > self._grace:
            self._was_killed = self._was_killed or process.poll() is None
            kill_group(process)


def _streams(process: "subprocess.Popen[bytes]") -> dict[Stream, IO[bytes]]:
    assert process.stdout is not None  # noqa: S101  both are pipes
    assert process.stderr is not None  # noqa: S101
    return {"stdout": process.stdout, "stderr": process.stderr}


def signal_group(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send a signal to a program and to its process group, if it leads one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        # In some sandboxes a process cannot leave the group of the runner.
        if process.pid != os.getpgrp() and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, number)
            return
    if process.poll() is None:
        process.send_signal(number)


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program that runs, with its process group."""
    if process.poll() is None:
        signal_group(process, signal.SIGKILL)


def adopt_orphans() -> None:
    """Have processes whose parents have ended become this process' children, where the kernel can."""
    # Without it, those that have left the group of their program are found by the sandbox alone.
    with contextlib.suppress(OSError, AttributeError):
        become_subreaper()


def end_descendants(*, except_for: frozenset[int] = frozenset()) -> int:
    """Kill all processes that a program has started and that still run; return their number.

    Args:
        except_for: this process' descendants that the program has not started.
    """
    ended: set[int] = set()
    for _ in range(100):  # each may start others before it is killed
        running = set(descendants(os.getpid())) - except_for
        if not running:
            break
        for pid in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended |= running
        _collect()
        time.sleep(0.01)
    return len(ended)


def _collect() -> None:
    """Wait for adopted processes that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def descendants(pid: int) -> Iterator[int]:
    """Yield a process' descendants that have not ended; none where the kernel does not list them."""
    for child in _children(pid):
        if not _has_ended(child):
            yield child
        yield from descendants(child)


def _children(pid: int) -> list[int]:
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                pids += map(int, (task / "children").read_text().split())
    return pids


def _has_ended(pid: int) -> bool:
    fields = _fields(pid)
    return not fields or fields[0] in "ZX"


def cpu_ticks(pids: Iterable[int]) -> int:
    """Return the CPU time for processes, and for their children that have ended, in clock ticks."""
    return sum(sum(map(int, fields[11:15])) for pid in pids if (fields := _fields(pid)))


def _fields(pid: int) -> list[str]:
    """Return a process' state and what follows it in its file `stat`; empty if it does not exist."""
    try:
        # Before it is the name of the program, which may contain spaces and brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
