"""Watches a sandbox and ends it above its limits. The kernel has limits for each process, but not for all."""

import logging
import math
import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import IO, Self

from jobs.messages.sandbox import MIB, Breach, Ended, Level
from workers.confinement.sandbox import usage
from workers.confinement.sandbox.process import SandboxProcess

log = logging.getLogger(__name__)

# Seconds between two measurements.
INTERVAL = 0.1
WALK_PAUSES = 10
"""The time between two measurements of its folders, in multiples of the time that one takes."""
HIDDEN_MEASUREMENTS = 10
"""After so many measurements in sequence, a process that cannot be measured is one that hides."""
CHUNK = 2**16
DRAIN_SECONDS = 1.0
"""Seconds without output after the end of a run, until a stream that is still open is left."""
STOP_TIMEOUT = 30.0
"""Seconds until the rest of the output is read, and until a measurement ends, after the end of a run."""


class Watch:
    """Measures a sandbox in its own thread until it ends.

    Args:
        process: the sandbox.
        writable: the folders in which it may write, beside its temporary one.
        interval: seconds between two measurements.
        printed: returns the bytes that it has printed into files; None if it prints only into streams that
            `read` reads.
        before: the bytes that are in its folders at the start, and do not count.
    """

    def __init__(
        self,
        process: SandboxProcess,
        writable: Iterable[str],
        *,
        interval: float = INTERVAL,
        printed: Callable[[], int] | None = None,
        before: int = 0,
    ) -> None:
        self._process = process
        self._folders = (*writable, str(process.temporary))
        self._interval = interval
        self._before = before
        self._printed_to_files = printed
        self._limits = process.record.limits
        self._printed = 0
        self._lock = threading.Lock()
        self._next_walk = 0.0
        self._hidden = 0
        self._stopped = threading.Event()
        self._readers: list[threading.Thread] = []
        self._read_until = math.inf
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._follow, name=f"watch of {process.pid}", daemon=True)
        self.ended: Ended | None = None
        """Why it was ended; None if it was not."""

    def start(self) -> Self:
        """Begin to watch."""
        self._thread.start()
        return self

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the sandbox and its output end, and return its exit status.

        Raises:
            subprocess.TimeoutExpired: it still runs.
            BaseException: the error that its output's receiver raised, which has ended the sandbox.
        """
        status = self._process.wait(timeout)
        self.stop()
        return status

    def stop(self) -> None:
        """End watching, after the sandbox's output is read: for `STOP_TIMEOUT`, or until it is silent.

        Raises:
            BaseException: see `wait`.
        """
        self._read_until = time.monotonic() + STOP_TIMEOUT
        for reader in self._readers:
            reader.join(STOP_TIMEOUT)
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT)
        if self._failure is not None:
            raise self._failure

    def read(self, stream: IO[bytes], receive: Callable[[bytes], object]) -> None:
        """Read a stream from the sandbox in a thread, up to the limit for its output.

        Args:
            stream: its output.
            receive: is called with each part, in that thread. If it raises, the sandbox is ended, and `wait`
                and `stop` raise the same.
        """
        # A descriptor of its own: closing the stream does not wait for the reader, and a file that is opened
        # then cannot have its number.
        duplicate = os.fdopen(os.dup(stream.fileno()), "rb", buffering=0)
        reader = threading.Thread(target=self._read, args=(duplicate, receive), daemon=True)
        try:
            reader.start()
        except RuntimeError:  # no thread can be started
            duplicate.close()
            raise
        self._readers.append(reader)

    def count_output(self, size: int) -> int:
        """Count bytes that the sandbox has printed; return how many are within the limit."""
        with self._lock:
            allowed = max(0, min(size, self._limits.output_of_all - self._printed))
            self._printed += size
            printed = self._printed
        if allowed < size:
            self._end(Breach.OUTPUT, printed, self._limits.output_of_all)
        return allowed

    def check(self) -> Ended | None:
        """Measure once, and end the sandbox if it is above a limit."""
        process, limits = self._process, self._limits
        level = process.record.level
        try:
            pids = process.processes()
        except usage.Unmeasurable as error:
            text = f"its processes could not be counted: {error}"
            self._end(Breach.PROCESSES, limits.processes_of_all + 1, limits.processes_of_all, text)
            return self.ended
        if len(pids) > limits.processes_of_all:
            self._end(Breach.PROCESSES, len(pids), limits.processes_of_all)
            return self.ended
        private = level is Level.BUBBLEWRAP
        memory = usage.memory(pids, limit=limits.memory_of_all, private_files=private)
        if memory > limits.memory_of_all:
            self._end(Breach.MEMORY, memory, limits.memory_of_all)
        elif self._is_hidden(pids):
            text = "a process hides its open files, so its memory could not be measured"
            self._end(Breach.MEMORY, memory, limits.memory_of_all, text)
        elif (printed := self._bytes_in_files()) > limits.output_of_all:
            self._end(Breach.OUTPUT, printed, limits.output_of_all)
        elif time.monotonic() >= self._next_walk:
            self._check_disk(pids)
        return self.ended

    def _bytes_in_files(self) -> int:
        return 0 if self._printed_to_files is None else self._printed_to_files()

    def _is_hidden(self, pids: list[int]) -> bool:
        # A process that is just being started is hidden for a moment.
        self._hidden = self._hidden + 1 if usage.is_hidden(pids) else 0
        return self._hidden >= HIDDEN_MEASUREMENTS

    def _check_disk(self, pids: list[int]) -> None:
        began = time.monotonic()
        limit = self._limits.disk_of_all
        try:
            used = usage.disk(self._folders, pids, limit=limit + self._before) - self._before
        except usage.Unmeasurable as error:
            self._end(Breach.DISK, limit + 1, limit, f"its disk space could not be measured: {error}")
            return
        if used > limit:
            self._end(Breach.DISK, used, limit)
        ended = time.monotonic()
        # A walk over very many files must not take much of the worker's time.
        self._next_walk = ended + WALK_PAUSES * (ended - began)

    def _follow(self) -> None:
        with ExitStack() as undo:
            # Without a watch it must not run.
            undo.callback(self._process.kill)
            while not self._stopped.wait(self._interval):
                if self._process.poll() is not None or self.check() is not None:
                    break
            undo.pop_all()

    def _read(self, stream: IO[bytes], receive: Callable[[bytes], object]) -> None:
        with stream:
            # Until its end, also above the limit: the sandbox must not wait for a reader when it is ended.
            while chunk := self._next_chunk(stream):
                allowed = self.count_output(len(chunk))
                if not allowed or self._failure is not None:
                    continue
                try:
                    receive(chunk[:allowed])
                except BaseException as error:  # noqa: BLE001  raised in the thread that waits
                    self._failure = error
                    self._process.kill()

    def _next_chunk(self, stream: IO[bytes]) -> bytes:
        """Wait for output. Return none at its end, or if it stays open after the run's end."""
        output = select.poll()
        output.register(stream, select.POLLIN)
        # Read before each wait: the silence begins after the end of the run.
        while time.monotonic() < (until := self._read_until):
            if output.poll(DRAIN_SECONDS * 1000):
                return stream.read(CHUNK)
            if until < math.inf:
                # At the level `process`, a process that has left may keep it open.
                log.warning("the output of the run %d was not closed at its end", self._process.pid)
                return b""
        log.warning("the output of the run %d was not read in %.0f s", self._process.pid, STOP_TIMEOUT)
        return b""

    def _end(self, breach: Breach, used: int, limit: int, message: str | None = None) -> None:
        with self._lock:
            if self.ended is not None:
                return
            text = message or _message(breach, limit)
            self.ended = Ended(breach=breach, used=used, limit=limit, message=f"this run was ended: {text}")
        self._process.kill()


def _message(breach: Breach, limit: int) -> str:
    size = f"{limit / MIB:.6g} MiB"
    return {
        Breach.MEMORY: f"its processes used more than {size} of memory together",
        Breach.PROCESSES: f"it had more than {limit} processes at one time",
        Breach.DISK: f"its files used more than {size} of disk space",
        Breach.OUTPUT: f"it printed more than {size}",
    }[breach]
