"""Defines a data set's rows: an array in memory, or rows that are read and encoded when they are used.

Both are selected by row numbers, so a training does not depend on where its rows are.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.mapped_columns import MappedColumns
from workers.engine.phases import Repeated

PART_BYTES = 4 << 20
"""Rows of about this size are encoded at once: they fit into the cache of a core."""
SCANNED_BYTES = 16 << 20
"""Rows of about this size are read at once where all rows are needed in their order."""


class Rows(Protocol):
    """Rows with equal shapes, as `numpy.ndarray` has them along its first axis."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The row count, followed by a row's shape."""

    @property
    def ndim(self) -> int:
        """The axis count."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The value type."""

    @property
    def nbytes(self) -> int:
        """All rows' size in memory."""

    def __len__(self) -> int:
        """Return the row count."""

    def __getitem__(self, rows: Any, /) -> Array:
        """Return some rows, by their numbers or by a slice."""


class StreamedRows:
    """Rows in a mapped file, which are read and encoded when they are selected.

    Args:
        columns: the file's columns.
        names: the columns that are encoded.
        encode: makes the input from these columns, (rows,) each.
        rows: row numbers in the file, ascending; None for all.
    """

    def __init__(
        self,
        columns: MappedColumns,
        names: tuple[str, ...],
        encode: Callable[[Mapping[str, Array]], Array],
        rows: Array | None = None,
    ) -> None:
        self._columns, self._names, self._encode, self._rows = columns, names, encode, rows
        few = self._read(np.arange(1))
        self._row_shape, self.dtype = few.shape[1:], few.dtype
        self._row_bytes = max(int(np.prod(self._row_shape)) * self.dtype.itemsize, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """See `Rows.shape`."""
        return (len(self), *self._row_shape)

    @property
    def ndim(self) -> int:
        """See `Rows.ndim`."""
        return 1 + len(self._row_shape)

    @property
    def nbytes(self) -> int:
        """See `Rows.nbytes`."""
        return len(self) * self._row_bytes

    @property
    def parts(self) -> Array:
        """Positions in these rows at which the file's batches begin, followed by the row count."""
        bounds = self._columns.bounds
        return bounds if self._rows is None else np.searchsorted(self._rows, bounds)

    def __len__(self) -> int:
        """See `Rows.__len__`."""
        return self._columns.rows if self._rows is None else len(self._rows)

    def __getitem__(self, rows: Array | slice) -> Array:
        """See `Rows.__getitem__`."""
        chosen = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        if self._rows is not None:
            chosen = self._rows[chosen]
        out = np.empty((len(chosen), *self._row_shape), self.dtype)
        # In the order of the file, so that each page of it is read once.
        ascending = np.argsort(chosen, kind="stable")
        at_once = max(PART_BYTES // self._row_bytes, 1)
        for start in range(0, len(chosen), at_once):
            part = ascending[start : start + at_once]
            out[part] = self._read(chosen[part])
        return out

    def select(self, rows: Array) -> "StreamedRows":
        """Return some rows, without reading them."""
        chosen = rows if self._rows is None else self._rows[rows]
        return StreamedRows(self._columns, self._names, self._encode, chosen)

    def _read(self, rows: Array) -> Array:
        return self._encode(self._columns.take(self._names, rows))


class Reordered:
    """Rows in another order, which are read by slices.

    Args:
        rows: the rows.
        order: their numbers in the new order.
    """

    def __init__(self, rows: Rows, order: Array) -> None:
        self._rows, self._order = rows, order

    @property
    def shape(self) -> tuple[int, ...]:
        """See `Rows.shape`."""
        return (len(self._order), *self._rows.shape[1:])

    @property
    def ndim(self) -> int:
        """See `Rows.ndim`."""
        return self._rows.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """See `Rows.dtype`."""
        return self._rows.dtype

    @property
    def nbytes(self) -> int:
        """See `Rows.nbytes`."""
        return self._rows.nbytes

    def __len__(self) -> int:
        """See `Rows.__len__`."""
        return len(self._order)

    def __getitem__(self, rows: Array | slice) -> Array:
        """See `Rows.__getitem__`."""
        return self._rows[self._order[rows]]


class WholeColumns(Mapping[str, Array]):
    """Columns that are each read as a whole when they are used; those with several axes are not listed."""

    def __init__(self, columns: Mapping[str, Rows]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> Array:
        """Return a column."""
        return self._columns[name][:]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return (name for name, column in self._columns.items() if column.ndim == 1)

    def __len__(self) -> int:
        """Return the column count."""
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a column."""
        return name in self._columns and self._columns[str(name)].ndim == 1


def selected(x: Rows, rows: Array) -> Rows:
    """Return some rows: a copy of an array, or rows that are not read yet.

    Args:
        x: all rows.
        rows: their numbers, ascending.
    """
    return x.select(rows) if isinstance(x, StreamedRows) else x[rows]


def in_parts(x: Rows) -> Iterator[Array]:
    """Yield all rows in order, in bounded parts."""
    row_bytes = max(x.nbytes // max(len(x), 1), 1)
    length = max(SCANNED_BYTES // row_bytes, 1)
    announce = Repeated("loading")
    for start in range(0, len(x), length):
        announce()
        yield x[start : start + length]


def in_memory(x: Rows) -> Array:
    """Return all rows. They are read in parts, so nothing else as large is in memory."""
    out, stop = np.empty(x.shape, x.dtype), 0
    for part in in_parts(x):
        start, stop = stop, stop + len(part)
        out[start:stop] = part
    return out
