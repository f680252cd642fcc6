"""Hashes a table's rows, column by column, to find equal rows."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from workers.engine.arrays import Array

PART_ROWS = 65_536
"""Rows that are hashed at once, so that they stay in the processor's cache."""


class RowHashes:
    """Hashes with 64 bits for rows whose columns are added one after the other.

    Rows that are equal in all these columns have equal hashes. Among ten million different rows, two have an
    equal hash with probability 1 to 370,000.

    Attributes:
        hashes: the row hashes so far, (rows,) uint64.
        all_differ: whether all rows are known to differ: further columns cannot change that, and are ignored.
    """

    def __init__(self, rows: int) -> None:
        self.hashes: Array = np.zeros(rows, np.uint64)
        self.all_differ = False
        self._columns = 0

    def add(self, bits: Array) -> None:
        """Add a column, (rows,), as `bits_of` returns it."""
        if self.all_differ:
            return
        self._columns += 1
        for start in range(0, len(bits), PART_ROWS):
            part = slice(start, start + PART_ROWS)
            _mix(self.hashes[part], bits[part])
        # Sorting costs more than hashing, so it is done rarely.
        if self._columns.bit_count() == 1:
            self.all_differ = not len(repeated(self.hashes))

    def copy(self) -> "RowHashes":
        """Return the same hashes, to which other columns can be added."""
        new = RowHashes(0)
        new.hashes, new.all_differ, new._columns = self.hashes.copy(), self.all_differ, self._columns
        return new

    def count_repeated(self) -> int:
        """Return how many rows equal an earlier one."""
        return 0 if self.all_differ else len(repeated(self.hashes))


def repeated(hashes: Array) -> Array:
    """Return the hashes that occur several times, in ascending order: one that occurs n times n - 1 times."""
    ordered = np.sort(hashes)
    return np.asarray(ordered[1:][ordered[1:] == ordered[:-1]])


def count_equal_rows(columns: Iterable[Array]) -> int:
    """Return how many rows equal an earlier row in all these columns, (rows,) each."""
    rows: RowHashes | None = None
    for column in columns:
        rows = rows or RowHashes(len(column))
        rows.add(bits_of(column))
        if rows.all_differ:
            return 0
    return rows.count_repeated() if rows is not None else 0


def bits_of(column: Array) -> Array:
    """Return 64 bits for each value, (rows,) uint64: equal for equal values, and hashes for texts."""
    match column.dtype.kind:
        case "f":
            numbers = column.astype(np.float64)
            # Numbers that are equal have equal bits: 0 and -0, and all NaN.
            numbers += 0.0
            numbers[np.isnan(numbers)] = np.nan
            return numbers.view(np.uint64)
        case "M":
            return column.astype(np.int64).view(np.uint64)
        case "b" | "i" | "u":
            return column.astype(np.int64 if column.dtype.kind != "u" else np.uint64).view(np.uint64)
    return np.concatenate([_bits_of_texts(part) for part in _parts(column)] or [np.zeros(0, np.uint64)])


def _parts(column: Array) -> Iterable[Array]:
    return (column[start : start + PART_ROWS] for start in range(0, len(column), PART_ROWS))


def _bits_of_texts(texts: Array) -> Any:
    import pandas as pd

    return pd.util.hash_array(np.asarray(texts.tolist(), dtype=object), categorize=False)


def _mix(hashes: Array, bits: Array) -> None:
    """Mix another column's values into the row hashes, in place; both (rows,) uint64.

    The steps are MurmurHash3's finalizer.
    """
    hashes *= np.uint64(0x9E3779B97F4A7C15)
    hashes ^= bits
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashes ^= hashes >> np.uint64(33)
        hashes *= np.uint64(factor)
    hashes ^= hashes >> np.uint64(33)
