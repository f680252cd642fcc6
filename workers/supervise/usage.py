"""What a runner and everything it started take of CPU and memory."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from jobs.contracts.events import Metric

MIB = 2**20


@dataclass(frozen=True)
class Usage:
    """A sample: CPU in per cent of one core since the sample before, resident memory in bytes."""

    cpu_percent: float
    memory: int

    def as_metric(self, second: float) -> Metric:
        """Return the points to chart, `second` seconds after the attempt began."""
        now = time.time()
        return Metric(
            time=now,
            x="second",
            points=(
                ("system/cpu_percent", second, round(self.cpu_percent, 1), now),
                ("system/memory_mib", second, round(self.memory / MIB, 1), now),
            ),
        )


def share_of(pid: int) -> int:
    """Return the bytes of memory that are a process' own, with its part of what it shares; 0 once it is gone.

    On Linux that is the proportional set size. A fork's resident size counts all that it has from its parent.
    """
    try:
        memory = psutil.Process(pid).memory_full_info()
    except psutil.Error:
        return 0
    return int(getattr(memory, "pss", memory.uss))


class ProcessTree:
    """Measures one process with its descendants."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seconds: dict[int, float] = {}
        self._looked = time.monotonic()

    def measure(self) -> Usage:
        """Take a sample. Reads /proc: call it in a thread.

        Shared pages count once for each process, so a tree of forks looks larger than it is.
        """
        before, self._seconds = self._seconds, {}
        memory, used = 0, 0.0
        for process in self._processes():
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    memory += process.memory_info().rss
            except psutil.Error:
                continue  # it ended while we looked
            self._seconds[process.pid] = times.user + times.system
            used += self._seconds[process.pid] - before.get(process.pid, 0.0)
        now = time.monotonic()
        elapsed, self._looked = now - self._looked, now
        return Usage(100.0 * used / elapsed if elapsed > 0 else 0.0, memory)

    def _processes(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self._pid)
            return [root, *_descendants(root)]
        except psutil.Error:
            return []


def _descendants(root: psutil.Process) -> list[psutil.Process]:
    """Return all below `root`. psutil reads every process of the machine for it, Linux tells it at once."""
    if not Path(f"/proc/{root.pid}/task/{root.pid}/children").exists():
        return list(root.children(recursive=True))
    found: list[psutil.Process] = []
    parents = [root.pid]
    while parents:
        for pid in _children(parents.pop()):
            try:
                found.append(psutil.Process(pid))
            except psutil.Error:
                continue  # it ended while we looked
            parents.append(pid)
    return found


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, task.read_text().split())
        except OSError:
            continue  # the thread ended while we looked
