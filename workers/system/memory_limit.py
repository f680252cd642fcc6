"""Reads how much memory this process may still allocate by its own limit."""

import resource
from pathlib import Path


def data_bytes() -> int | None:
    """Return the bytes that `RLIMIT_DATA` counts; None if the system does not report them."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except FileNotFoundError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), None)


def bytes_left() -> int | None:
    """Return how many bytes this process may still allocate; None without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    used = data_bytes()
    return None if limit == resource.RLIM_INFINITY or used is None else max(0, limit - used)
