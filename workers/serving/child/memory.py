"""Reads how much memory this process may still use, and returns unused memory to the system (Linux)."""

import ctypes
import sys
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def free_bytes() -> int | None:
    """Return the bytes that can be allocated before the kernel ends a process; None if unknown."""
    free = [value for value in (_machine_free(), _group_free()) if value is not None]
    return min(free, default=None)


def return_unused() -> None:
    """Return freed memory to the system, which the allocator would keep: after compiling, about 10 MB."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def _machine_free() -> int | None:
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return int(kilobytes) * 1024 if kilobytes is not None else None


def _group_free() -> int | None:
    """Return the bytes that the container may still use (cgroup v2)."""
    try:
        limit = (_GROUP / "memory.max").read_text().strip()
        if limit == "max":
            return None
        used = int((_GROUP / "memory.current").read_text())
        statistics = dict(line.split() for line in (_GROUP / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    # `memory.current` includes the page cache. The kernel frees its inactive part when memory is needed.
    return int(limit) - used + int(statistics.get("inactive_file", 0))
