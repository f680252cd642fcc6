"""Stores an attempt's events on the worker's disk until they are in the database."""

import os
from pathlib import Path
from typing import NamedTuple

BATCH_BYTES = 2**20
MAX_LINE_BYTES = 4 * 2**20
"""The longest line. A batch always contains at least one whole line."""


class Batch(NamedTuple):
    """Whole lines of the spool, and the position after them."""

    lines: tuple[bytes, ...]
    end: int


class Spool:
    """An append-only file of lines. `size` counts whole lines only, even after a failed write."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._synced = 0
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
            written += os.pwrite(self._descriptor, data[written:], self.size + written)
        self.size += len(data)

    def read(self, position: int) -> Batch:
        """Return the next lines from `position` on, up to about `BATCH_BYTES`."""
        wanted = min(self.size - position, BATCH_BYTES)
        data = os.pread(self._descriptor, wanted, position)
        # The first line alone is longer than a batch.
        if b"\n" not in data and position + wanted < self.size:
            data = os.pread(self._descriptor, min(self.size - position, MAX_LINE_BYTES + 1), position)
        whole = data[: data.rfind(b"\n") + 1]
        return Batch(tuple(whole.split(b"\n")[:-1]), position + len(whole))

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
