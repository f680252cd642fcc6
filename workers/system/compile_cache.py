"""Evicts compiled programs from the compile cache: least recently used first."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from jobs.runner_files import opened_parent

LIMIT_VARIABLE = "TRAINYARD_COMPILE_CACHE_BYTES"
DEFAULT_LIMIT = 2 * 2**30
UNUSED_SECONDS = 30 * 86_400.0
# A process writes a program to a file whose name begins with a dot, and renames it when it is complete.
# Writing takes seconds, so an older one was left behind by a process that was killed.
PARTIAL_SECONDS = 600.0


class CachedProgram(NamedTuple):
    """A file in a cache. A process that reads it updates its modification time."""

    last_used: float
    size: int
    path: str
    """Below the folder of all caches."""


def limit_bytes(environment: Mapping[str, str] = os.environ) -> int:
    """Return the total size that all caches for a home's runners may have.

    Raises:
        ValueError: it is not a whole number.
    """
    text = environment.get(LIMIT_VARIABLE) or str(DEFAULT_LIMIT)
    if not text.isdecimal():
        raise ValueError(f"{LIMIT_VARIABLE}={text!r}: give a number of bytes, such as {DEFAULT_LIMIT}")
    return int(text)


def evict(caches: Path, limit: int, *, unused_seconds: float = UNUSED_SECONDS) -> None:
    """Delete long unused programs, partial files from killed processes, and the oldest beyond `limit` bytes.

    Another process may do the same concurrently. One that finds a program missing compiles it.

    Args:
        caches: a folder with programs, or with such folders.
        limit: the total size in bytes.
        unused_seconds: a program that was read last before this time is deleted in any case.
    """
    now = time.time()
    total = 0
    # Newest first, so that the programs beyond the limit are the least recently used ones.
    for program in sorted(_programs(caches), reverse=True):
        total += program.size
        partial = program.path.rpartition("/")[2].startswith(".")
        abandoned = partial and program.last_used < now - PARTIAL_SECONDS
        if total > limit or program.last_used < now - unused_seconds or abandoned:
            # Runners write there: a folder may be a link by now.
            with contextlib.suppress(OSError), opened_parent(caches, program.path) as (parent, name):
                os.unlink(name, dir_fd=parent)
    for folder in caches.glob("*"):
        # `rmdir` fails for a folder that is not empty. A new folder is empty too, until its first program.
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < now - unused_seconds:
                folder.rmdir()


def _programs(caches: Path) -> Iterator[CachedProgram]:
    for folder, _, names, descriptor in os.fwalk(caches):
        for name in names:
            try:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue  # another process deleted it first
            # A runner may have left a link: no program, and its size is the length of its target's path.
            size = status.st_size if stat.S_ISREG(status.st_mode) else 0
            path = str(Path(folder, name).relative_to(caches))
            yield CachedProgram(status.st_mtime, size, path)
