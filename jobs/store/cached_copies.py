"""Keeps a machine's copies of stored files below a size: the least recently used ones go first."""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from jobs.store.base import is_digest

DEFAULT_LIMIT = 20 * 2**30
DOWNLOAD = ".download-"
"""The beginning of the names of folders into which a file is downloaded."""
INCOMPLETE_SECONDS = 24 * 3600.0
"""An incomplete file that is older belongs to a process that was killed."""
IN_USE_SECONDS = 3600.0
"""A file that was asked for may be opened so much later: packages are installed before a run starts."""
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_TASKS = "nodes/*/attempts/*/spec.json"
"""The tasks of the attempts that run on this machine, below the home. They name the files of runners."""


class _Entry(NamedTuple):
    used: float
    bytes: int
    path: Path


def evict(cache: Path, limit: int, *, folders: Iterable[Path] = ()) -> int:
    """Delete the least recently used copies beyond the limit, and return how many.

    Incomplete files that killed processes left are deleted, too. A file that was used in the last hour, or
    that a running attempt names, is kept, also above the limit. A process that reads a file while it is
    deleted reads it to its end.

    Args:
        cache: the folder of a `LocalStore`, in the home.
        limit: the size in bytes.
        folders: folders with checkpoints of finished jobs, which count too.
    """
    before = time.time() - IN_USE_SECONDS
    in_use = _named_in_tasks(cache.parent)
    total = evicted = 0
    _delete_incomplete(cache, before=time.time() - INCOMPLETE_SECONDS)
    entries = [*_files(cache), *(entry for folder in folders for entry in _whole(folder))]
    # Newest first, so that those beyond the limit are the least recently used ones.
    for entry in sorted(entries, reverse=True):
        total += entry.bytes
        if total > limit and entry.used < before and entry.path.name not in in_use:
            _delete(entry.path)
            evicted += 1
    return evicted


def _delete_incomplete(cache: Path, *, before: float) -> None:
    # No other part does it on a machine without a scheduler.
    for pattern in (f"{DOWNLOAD}*", "[0-9a-f][0-9a-f]/.put-*"):
        for path in cache.glob(pattern):
            with contextlib.suppress(FileNotFoundError):  # another process evicts too
                if path.stat().st_mtime < before:
                    _delete(path)


def _files(cache: Path) -> Iterator[_Entry]:
    for path in cache.glob("[0-9a-f][0-9a-f]/*"):
        with contextlib.suppress(FileNotFoundError):  # another process evicts too
            facts = path.stat()
            if is_digest(path.name):
                yield _Entry(facts.st_mtime, facts.st_size, path)


def _whole(folder: Path) -> Iterator[_Entry]:
    """Yield a folder with all that is below it, as one entry."""
    used, size = 0.0, 0
    for place, _, names in os.walk(folder):
        for path in (Path(place), *(Path(place, name) for name in names)):
            with contextlib.suppress(FileNotFoundError):
                facts = path.lstat()
                used = max(used, facts.st_mtime)
                size += facts.st_size
    if used:
        yield _Entry(used, size, folder)


def _named_in_tasks(home: Path) -> set[str]:
    named: set[str] = set()
    for task in home.glob(_TASKS):
        with contextlib.suppress(OSError):
            named.update(_DIGEST.findall(task.read_text()))
    return named


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
