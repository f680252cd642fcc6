"""Checks the free disk space before new work starts."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

GIB = 2**30


def min_free_bytes(environment: Mapping[str, str] = os.environ) -> int:
    """Return the free space in bytes below which no new work starts: 1 GiB unless the environment sets it."""
    return int(environment.get("TRAINYARD_MIN_FREE_BYTES") or GIB)


def disk_shortage(folders: Iterable[Path], min_free: int) -> str | None:
    """Return an error sentence if the disk below any of `folders` has fewer than `min_free` bytes free."""
    for folder in folders:
        disk = os.statvfs(folder)
        # f_bavail, not f_bfree: the file system reserves some blocks for root.
        free = disk.f_bavail * disk.f_frsize
        if free < min_free:
            return (
                f"{folder} has {free / GIB:.2f} GiB free, but new work needs {min_free / GIB:.2f} GiB: "
                "remove files or lower TRAINYARD_MIN_FREE_BYTES"
            )
    return None
