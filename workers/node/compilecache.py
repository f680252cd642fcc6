"""Bounds the compiled programs that runners keep: the longest unused go first."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIMIT_VARIABLE = "TRAINYARD_COMPILE_CACHE_BYTES"
USUAL_LIMIT = 2 * 2**30
UNUSED_DAYS = 30
UNFINISHED_SECONDS = 600.0


class Program(NamedTuple):
    """A file of a cache; reading one marks it as used."""

    used: float
    bytes: int
    path: Path


def limit(environment: "os._Environ[str] | dict[str, str]" = os.environ) -> int:
    """Return the bytes that all caches of this home may hold together."""
    return int(environment.get(LIMIT_VARIABLE) or USUAL_LIMIT)


def bound(caches: Path, most: int) -> None:
    """Remove what nobody used for weeks, what a killed runner left, and what is beyond `most` bytes.

    Another node of this home may do the same meanwhile; a runner that misses a program compiles it.
    """
    now = time.time()
    kept = 0
    for program in sorted(_programs(caches), reverse=True):
        kept += program.bytes
        unfinished = program.path.name.startswith(".") and program.used < now - UNFINISHED_SECONDS
        if kept > most or program.used < now - UNUSED_DAYS * 86_400 or unfinished:
            program.path.unlink(missing_ok=True)
    for folder in caches.glob("*"):
        with contextlib.suppress(OSError):  # it is not empty
            if folder.stat().st_mtime < now - UNUSED_DAYS * 86_400:
                folder.rmdir()


def _programs(caches: Path) -> Iterator[Program]:
    for path in caches.rglob("*"):
        try:
            status = path.stat()
        except OSError:
            continue  # somebody was faster
        if path.is_file():
            yield Program(status.st_mtime, status.st_size, path)
