"""Measures CPU and memory for a runner and its descendants."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from jobs.messages.events import Metric

MIB = 2**20


@dataclass(frozen=True)
class Usage:
    """A sample from a process tree.

    Attributes:
        cpu_percent: CPU since the previous sample, in percent of one core.
        memory: resident memory in bytes, without pages from mapped files, which the kernel can drop.
        cpu_seconds: CPU time since the tree was first measured.
        processes: how many processes there are.
    """

    cpu_percent: float
    memory: int
    cpu_seconds: float = 0.0
    processes: int = 0

    def as_metric(self, second: float, more: Sequence[tuple[str, float, float, float]] = ()) -> Metric:
        """Return the sample with `more` points, `second` seconds after the attempt's start."""
        now = time.time()
        return Metric(
            time=now,
            x="second",
            points=(
                ("system/cpu_percent", second, round(self.cpu_percent, 1), now),
                ("system/memory_mib", second, round(self.memory / MIB, 1), now),
                *more,
            ),
        )


def proportional_memory(pid: int) -> int:
    """Return a process' memory in bytes, with shared pages divided among their users; 0 if it has ended.

    On Linux this is the proportional set size. A fork's resident size would count all pages of its
    parent.
    """
    try:
        memory = psutil.Process(pid).memory_full_info()
    except psutil.Error:
        return 0
    return int(getattr(memory, "pss", memory.uss))


class ProcessTree:
    """Measures one process with its descendants.

    Args:
        pid: the process.
        processes: returns the pids to measure instead.
    """

    def __init__(self, pid: int, processes: Callable[[], Iterable[int]] | None = None) -> None:
        self._pid, self._processes = pid, processes
        # CPU seconds by process: its pid, and when it was created, since pids are reused.
        self._seconds: dict[tuple[int, float], float] = {}
        self._began = time.time()
        self._used = 0.0
        self._measured_at = time.monotonic()

    def measure(self) -> Usage:
        """Take a sample. Reads /proc: call it in a thread.

        Shared pages count for each process, so a tree of forks seems larger than it is. The first sample from
        a process that is older than this object counts no CPU: a warm runner has worked on earlier tasks.
        """
        before, self._seconds = self._seconds, self._still_existing()
        memory, used = 0, 0.0
        processes = self._present()
        for process in processes:
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    memory += _memory_of(process)
                    key = (process.pid, process.create_time())
            except psutil.Error:
                continue  # it ended meanwhile
            seconds = times.user + times.system
            self._seconds[key] = seconds
            used += seconds - before.get(key, seconds if key[1] < self._began else 0.0)
        now = time.monotonic()
        elapsed, self._measured_at = now - self._measured_at, now
        # The clock of processes ticks every 10 ms, so in a short time it may show more than all cores.
        cores = min(used / elapsed, os.cpu_count() or 1) if elapsed > 0 else 0.0
        self._used += used
        return Usage(100.0 * cores, memory, self._used, len(processes))

    def pids(self) -> list[int]:
        """Return the present processes."""
        return [process.pid for process in self._present()]

    def _present(self) -> list[psutil.Process]:
        try:
            if self._processes is not None:
                return list(_existing(self._processes()))
            root = psutil.Process(self._pid)
            return [root, *_descendants(root)]
        except psutil.Error:  # the process has ended
            return []

    def _still_existing(self) -> dict[tuple[int, float], float]:
        """Return the known processes that exist: the next sample may not find one whose parent just ended."""
        return {key: seconds for key, seconds in self._seconds.items() if psutil.pid_exists(key[0])}


def _memory_of(process: psutil.Process) -> int:
    """Return a process's resident memory that belongs to no file, in bytes."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except OSError:
        lines = []
    # A training may map a version of any size. Files in memory count as `RssShmem`.
    sizes = [int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon:", "RssShmem:"))]
    return sum(sizes) if sizes else int(process.memory_info().rss)


def _descendants(root: psutil.Process) -> list[psutil.Process]:
    """Return a process's children, their children and so on."""
    # psutil reads every process of the machine to find children. Most Linux kernels list them.
    if not Path(f"/proc/{root.pid}/task/{root.pid}/children").exists():
        return list(root.children(recursive=True))
    descendants: list[psutil.Process] = []
    parents = [root.pid]
    while parents:
        present = list(_existing(_children(parents.pop())))
        descendants += present
        parents += [process.pid for process in present]
    return descendants


def _existing(pids: Iterable[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        with contextlib.suppress(psutil.Error):  # it ended meanwhile
            yield psutil.Process(pid)


def _children(pid: int) -> Iterator[int]:
    # Each thread has a list of the children that it started.
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, task.read_text().split())
        except OSError:
            continue  # the thread ended meanwhile
