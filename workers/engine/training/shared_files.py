"""Lets a training's checkpoints share files by hard links, instead of writing equal bytes again.

Each checkpoint folder has all its files under its own names, so any checkpoint can be deleted, copied or read
alone. The epoch history only grows: each checkpoint appends its new epochs to the file that it shares
with the earlier ones, and its manifest states how many bytes of it belong to it. Bytes that a killed process
appended after them are ignored, and overwritten by the next checkpoint.

Only the process that began such a file appends to it. A resumed training writes its first history in full:
the process before it may still be running without its lease.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from workers.engine.arrays import Array
from workers.engine.training.array_groups import MappedArrays

HISTORY = "history.jsonl"
"""One JSON object a line: the metrics of an epoch."""


class FilePart(NamedTuple):
    """A file's first bytes, and their SHA-256."""

    bytes: int
    sha256: str


EMPTY = FilePart(0, hashlib.sha256().hexdigest())


@dataclass(frozen=True)
class _Written:
    """A checkpoint, and what later ones can take over from it.

    Attributes:
        folder: its path.
        groups: array groups, by name, that later checkpoints may contain unchanged.
        epochs: epochs in its history.
        part: the bytes in its history.
        hash: their hash, to be continued.
    """

    folder: Path
    groups: Mapping[str, list[Array]] = field(default_factory=dict)
    epochs: int = 0
    part: FilePart = EMPTY
    hash: Any = field(default_factory=hashlib.sha256)


class SharedFiles:
    """Files that one training's checkpoints share. One process uses it, for one training."""

    def __init__(self) -> None:
        self._committed: _Written | None = None
        self._next = _Written(Path())

    def link_group(self, folder: Path, group: str, arrays: list[Array]) -> bool:
        """Link a group's file if the newest checkpoint or another file has the same list.

        Args:
            folder: the new checkpoint's folder.
            group: the group's name.
            arrays: its arrays; the same list object means the same values.

        Returns:
            Whether it was linked. If not, it must be written.
        """
        newest, place = self._committed, folder / f"{group}.npz"
        files = [arrays.file] if isinstance(arrays, MappedArrays) else []
        if newest is not None and newest.groups.get(group) is arrays:
            files.insert(0, newest.folder / f"{group}.npz")
        return any(_linked(file, place) for file in files)

    def write_history(self, folder: Path, history: Sequence[Mapping[str, float]]) -> FilePart:
        """Write the history into a new checkpoint's folder, and sync it; only new epochs if possible.

        Returns:
            The file's bytes that belong to this checkpoint.
        """
        path, newest = folder / HISTORY, self._committed
        if newest is None or len(history) < newest.epochs or not _linked(newest.folder / HISTORY, path):
            newest = _Written(folder)
        elif path.stat().st_size < newest.part.bytes:  # damaged since
            path.unlink()
            newest = _Written(folder)
        new = b"".join(json.dumps(epoch).encode() + b"\n" for epoch in history[newest.epochs :])
        with path.open("r+b" if newest.epochs else "wb") as file:
            # Not at the end: an incomplete checkpoint may have appended.
            file.seek(newest.part.bytes)
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        continued = newest.hash.copy()
        continued.update(new)
        part = FilePart(newest.part.bytes + len(new), continued.hexdigest())
        self._next = _Written(folder, epochs=len(history), part=part, hash=continued)
        return part

    def commit(self, folder: Path, groups: Mapping[str, list[Array]]) -> None:
        """Note that the checkpoint from the last `write_history` has been committed as `folder`.

        Args:
            folder: its path.
            groups: its array groups whose list is replaced whenever its contents change.
        """
        self._committed = replace(self._next, folder=folder, groups=groups)


def _linked(existing: Path, new: Path) -> bool:
    """Make a hard link; return whether the file exists and its file system has hard links."""
    try:
        os.link(existing, new)
    except OSError:
        return False
    return True


def read_history(folder: Path, size: int) -> list[dict[str, float]]:
    """Return a checkpoint's history.

    Args:
        folder: the checkpoint's folder.
        size: how many bytes in the file belong to it.
    """
    with (folder / HISTORY).open("rb") as file:
        return [json.loads(line) for line in file.read(size).splitlines()]


def part_digest(path: Path, size: int) -> str:
    """Return the SHA-256 of a file's first bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (block := file.read(min(size, 1 << 20))):
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()
