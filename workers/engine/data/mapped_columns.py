"""Reads single rows from the columns in a version's file, which is mapped into memory.

The pages belong to the file, so the kernel can drop them at any time, and no column need fit into memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.reading.arrow_columns import DTYPE, SHAPE, to_numpy
from workers.engine.data.reading.arrow_file import NAME
from workers.engine.errors import BadData

type Take = Callable[[Array, Array], Array]
"""Returns rows of one column, from the number of the batch of each row and its position in the batch."""


class MappedColumns(Mapping[str, "MappedColumn"]):
    """The columns in a version's file by name.

    Args:
        path: an Arrow IPC file, uncompressed.

    Attributes:
        rows: the row count.
        bounds: each batch's first row number, followed by the row count.

    Raises:
        BadData: it is not a readable dataset file.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        try:
            with pa.memory_map(str(path)) as source:
                self._file = source.read_buffer()
            reader = pa.ipc.open_file(pa.BufferReader(self._file))
            batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
            for batch in batches:
                # Arrow trusts the offsets in a file, and would read other memory of this process. Only texts
                # have some, so this does not read the numbers.
                batch.validate(full=True)
            self._columns, self._arrays = _places(reader.schema)
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            raise BadData(f"{path.name} is not a readable data set file: {error}") from error
        self._fields = list(reader.schema)
        self._chunks = [[batch.column(place) for batch in batches] for place in range(len(self._fields))]
        self.bounds = np.cumsum([0, *(batch.num_rows for batch in batches)])
        self.rows = int(self.bounds[-1])
        self._takes: dict[int, Take] = {}

    def __getitem__(self, name: str) -> "MappedColumn":
        """Return a column."""
        return MappedColumn(self, name, self._chunk(self._columns[name], 0, 0))

    def __iter__(self) -> Iterator[str]:
        """Yield the column names."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the column count."""
        return len(self._columns)

    def take(self, names: Sequence[str], rows: Array) -> dict[str, Array]:
        """Return some rows from some columns.

        Args:
            names: the column names.
            rows: the row numbers, (rows,).
        """
        batches = np.searchsorted(self.bounds, rows, side="right") - 1
        positions = rows - self.bounds[batches]
        return {name: self._take(self._columns[name])(batches, positions) for name in names}

    def array(self, name: str) -> Array:
        """Return an encoded array from the file, such as `y`, (rows, …).

        Raises:
            BadData: it has none with this name.
        """
        if name not in self._arrays:
            raise BadData(f"the file of the data set has no array {name!r}")
        return self._whole(self._arrays[name])

    def head(self, name: str, rows: int) -> Array | None:
        """Return an encoded array's first rows; None if none has this name."""
        return self._chunk(self._arrays[name], 0, rows) if name in self._arrays else None

    def column(self, name: str) -> Array:
        """Return a column's rows, (rows, …)."""
        return self._whole(self._columns[name])

    def _whole(self, place: int) -> Array:
        import pyarrow as pa

        field = self._fields[place]
        array = to_numpy(pa.chunked_array(self._chunks[place], field.type), field)
        return array if array.flags.writeable else array.copy()

    def _chunk(self, place: int, start: int, stop: int) -> Array:
        return to_numpy(self._chunks[place][0].slice(start, stop - start), self._fields[place])

    def _take(self, place: int) -> Take:
        if place not in self._takes:
            self._takes[place] = self._of_numbers(place) or self._of_any_values(place)
        return self._takes[place]

    def _of_numbers(self, place: int) -> Take | None:
        """Return the function that reads a column with plain numbers; None for other columns."""
        dtype = _number_type(self._fields[place])
        chunks = self._chunks[place]
        if dtype is None or any(chunk.null_count for chunk in chunks):
            return None
        first = [chunk.buffers()[1].address - self._file.address for chunk in chunks]
        starts, remainders = np.divmod(np.asarray(first, np.int64), dtype.itemsize)
        if remainders.any():
            return None
        # One array over the whole file: a value of any batch is read without a loop over the batches.
        values = np.frombuffer(self._file, dtype, count=self._file.size // dtype.itemsize)
        return lambda batches, positions: values.take(starts[batches] + positions)

    def _of_any_values(self, place: int) -> Take:
        """Return the function that reads a column with texts, times, booleans or arrays, batch by batch."""
        import pyarrow as pa

        chunks, field = self._chunks[place], self._fields[place]
        example = self._chunk(place, 0, 0)

        def take(batches: Array, positions: Array) -> Array:
            out = np.empty((len(positions), *example.shape[1:]), example.dtype)
            # Comparing all rows with each batch would take a time that grows with the product of both.
            order = np.argsort(batches, kind="stable")
            starts = np.flatnonzero(np.diff(batches[order], prepend=-1))
            for start, stop in pairwise([*starts.tolist(), len(order)]):
                inside = order[start:stop]
                values = chunks[batches[inside[0]]].take(pa.array(positions[inside]))
                out[inside] = to_numpy(values, field)
            return out

        return take


class MappedColumn:
    """One column in a mapped file, (rows, …), read where it is selected; see `rows.Rows`."""

    def __init__(self, columns: MappedColumns, name: str, example: Array) -> None:
        self._columns, self._name = columns, name
        self.dtype, self.ndim = example.dtype, example.ndim
        self.shape = (columns.rows, *example.shape[1:])

    @property
    def nbytes(self) -> int:
        """See `Rows.nbytes`."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def __len__(self) -> int:
        """See `Rows.__len__`."""
        return self.shape[0]

    def __getitem__(self, rows: Array | slice) -> Array:
        """See `Rows.__getitem__`."""
        if isinstance(rows, slice):
            if rows == slice(None):
                return self._columns.column(self._name)
            rows = np.arange(*rows.indices(len(self)))
        return self._columns.take([self._name], rows)[self._name]


def _places(schema: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Return where a file's schema has the columns and the encoded arrays."""
    columns, arrays = {}, {}
    for place, field in enumerate(schema):
        metadata = field.metadata or {}
        if NAME in metadata:
            columns[metadata[NAME].decode()] = place
        else:
            arrays[field.name] = place
    return columns, arrays


def _number_type(field: Any) -> np.dtype[Any] | None:
    """Return a column's type if its values are in one buffer for each batch; None for others."""
    import pyarrow as pa

    metadata = field.metadata or {}
    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    if SHAPE in metadata or not is_number:
        return None
    dtype = np.dtype(field.type.to_pandas_dtype())
    # A time in a unit that Arrow lacks is stored as an integer.
    return dtype if metadata.get(DTYPE, b"").decode() == dtype.str else None
