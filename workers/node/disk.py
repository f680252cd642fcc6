"""Whether there is room for new work."""

import os
from collections.abc import Iterable
from pathlib import Path

GIB = 2**30


def least_free(environment: "os._Environ[str] | dict[str, str]" = os.environ) -> int:
    """Return the bytes below which no new work starts: at least 1 GiB unless told otherwise."""
    return int(environment.get("TRAINYARD_MIN_FREE_BYTES") or GIB)


def shortage(folders: Iterable[Path], least: int) -> str | None:
    """Return a sentence if the disk of one of `folders` has fewer than `least` bytes free."""
    for folder in folders:
        disk = os.statvfs(folder)
        free = disk.f_bavail * disk.f_frsize
        if free < least:
            return (
                f"{folder} has {free / GIB:.2f} GiB free, new work needs {least / GIB:.2f} GiB: "
                "remove files or lower TRAINYARD_MIN_FREE_BYTES"
            )
    return None
