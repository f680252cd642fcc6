"""Stores an attempt's events on the worker's disk until they are in the database."""

import os
from pathlib import Path
from typing import NamedTuple

BATCH_BYTES = 2**20
MAX_LINE_BYTES = 4 * 2**20
"""The longest line. A batch always contains at least one whole line."""


DISCARD_BYTES = 16 * 2**20
"""Recorded lines are removed from the file once they have so many bytes, and the others at most a quarter."""


class Batch(NamedTuple):
    """Whole lines from the spool, and the position after them."""

    lines: tuple[bytes, ...]
    end: int


class Spool:
    """A file to which lines are appended. Positions and `size` count all lines that were ever appended.

    `size` counts whole lines only, even after a failed write.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._synced = 0
        self._start = 0  # the position of the beginning of the file
        self.size = 0

    def append(self, line: bytes) -> None:
        """Add a line.

        Raises:
            OSError: the disk is full. The part already written is overwritten by the next line.
        """
        # `pwrite` at `size` instead of an append: after a failed write, the next line overwrites its part.
        data = line + b"\n"
        written = 0
        while written < len(data):
            written += os.pwrite(self._descriptor, data[written:], self.size - self._start + written)
        self.size += len(data)

    def read(self, position: int) -> Batch:
        """Return the next lines from `position` on, up to about `BATCH_BYTES`."""
        size = min(self.size - position, BATCH_BYTES)
        data = self._bytes(position, size)
        # The first line alone is longer than a batch.
        if b"\n" not in data and position + size < self.size:
            data = self._bytes(position, min(self.size - position, MAX_LINE_BYTES + 1))
        whole = data[: data.rfind(b"\n") + 1]
        return Batch(tuple(whole.split(b"\n")[:-1]), position + len(whole))

    def discard(self, position: int) -> None:
        """Free the space for many lines before `position`, which are in the database.

        No process reads the file after a crash, so it may be changed in place.
        """
        recorded, rest = position - self._start, self.size - position
        if recorded < DISCARD_BYTES or rest > DISCARD_BYTES // 4:
            return
        data = self._bytes(position, rest)
        written = 0
        while written < rest:
            written += os.pwrite(self._descriptor, data[written:], written)
        self._start = position
        os.ftruncate(self._descriptor, rest)

    def _bytes(self, position: int, count: int) -> bytes:
        return os.pread(self._descriptor, count, position - self._start)

    @property
    def dirty(self) -> bool:
        """Whether lines may not be on the disk yet."""
        return self._synced < self.size

    def sync(self) -> None:
        """Flush everything appended before this call to the disk. Slow: call it in a thread."""
        # Read first: lines that are appended during the flush may not be on the disk.
        size = self.size
        os.fdatasync(self._descriptor)
        self._synced = size

    def close(self) -> None:
        os.close(self._descriptor)
