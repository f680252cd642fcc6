"""An attempt's events on the worker's disk until the database has them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BATCH_BYTES = 2**20
LINE_LIMIT = 4 * 2**20
"""No line is longer; a batch always holds at least one whole line."""


class Batch(NamedTuple):
    """Whole lines of the spool, and the position behind them."""

    lines: tuple[bytes, ...]
    end: int


class Spool:
    """An append-only file of lines. `size` counts whole lines only, whatever the disk did."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._synced = 0
        self.size = 0

    def append(self, line: bytes) -> None:
        """Add a line.

        Raises:
            OSError: the disk is full. The part already written is overwritten by the next line.
        """
        data = line + b"\n"
        written = 0
        while written < len(data):
            written += os.pwrite(self._descriptor, data[written:], self.size + written)
        self.size += len(data)

    def read(self, position: int) -> Batch:
        """Return the next lines from `position` on, about a mebibyte of them."""
        wanted = min(self.size - position, BATCH_BYTES)
        data = os.pread(self._descriptor, wanted, position)
        if b"\n" not in data and position + wanted < self.size:
            data = os.pread(self._descriptor, min(self.size - position, LINE_LIMIT + 1), position)
        whole = data[: data.rfind(b"\n") + 1]
        return Batch(tuple(_lines(whole)), position + len(whole))

    @property
    def dirty(self) -> bool:
        """Whether lines are not surely on the disk yet."""
        return self._synced < self.size

    def sync(self) -> None:
        """Wait until everything appended before this call is on the disk. Slow: call in a thread."""
        size = self.size
        os.fdatasync(self._descriptor)
        self._synced = size

    def close(self) -> None:
        """Give the file back."""
        os.close(self._descriptor)


def _lines(data: bytes) -> Iterator[bytes]:
    return iter(data.split(b"\n")[:-1])
