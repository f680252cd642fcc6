"""Writes and reads a dataset version's file: an uncompressed Arrow IPC file in equally long batches.

A reader can map it into memory. Equal columns give equal bytes with the same pyarrow version.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.reading.arrow_columns import field_of, to_arrow, to_numpy
from workers.engine.data.spilled import SpilledColumns, head
from workers.engine.errors import BadData

BATCH_ROWS = 65_536
"""Rows of each batch of the file, except the last one."""
MAGIC = b"ARROW1"
NAME = b"name"
"""Metadata of a field: the name of the column."""
COLUMN = "column_{}"


def write_columns(path: Path, arrays: Mapping[str, Array], columns: Mapping[str, Array]) -> None:
    """Write a version's file, one batch after the other.

    Args:
        path: the new file's path.
        arrays: encoded arrays by name, such as `y`.
        columns: the columns by name, which are stored as `column_<i>`.
    """
    import pyarrow as pa

    fields = [field_of(name, array) for name, array in arrays.items()]
    for number, name in enumerate(columns):
        fields.append(field_of(COLUMN.format(number), head(columns, name, 1), name=name))
    schema = pa.schema(fields)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in _batches(schema, arrays, columns):
            writer.write_batch(batch)


def _batches(schema: Any, arrays: Mapping[str, Array], columns: Mapping[str, Array]) -> Iterator[Any]:
    import pyarrow as pa

    spilled = columns if isinstance(columns, SpilledColumns) else None
    rows = len(next(iter(arrays.values())))
    for start in range(0, rows, BATCH_ROWS):
        stop = min(start + BATCH_ROWS, rows)
        parts = [to_arrow(array[start:stop]) for array in arrays.values()]
        parts += [
            to_arrow(columns[name][start:stop]) if spilled is None else spilled.part(name, start, stop)
            for name in columns
        ]
        yield pa.RecordBatch.from_arrays(parts, schema=schema)


def is_arrow(path: Path) -> bool:
    """Return whether a file is an Arrow IPC file. Earlier releases wrote NPZ files."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_columns(path: Path) -> dict[str, Array]:
    """Return a file's arrays, the names as `columns` and the columns as `column_<i>`.

    Raises:
        BadData: it is not a readable dataset file.
    """
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
            # Arrow trusts the offsets in a file, and would read other memory of this process.
            table.validate(full=True)
            columns = {field.name: to_numpy(table[field.name], field) for field in table.schema}
            names = [
                field.metadata[NAME].decode() for field in table.schema if NAME in (field.metadata or {})
            ]
    except (pa.ArrowException, KeyError, ValueError, TypeError) as error:
        raise BadData(f"{path.name} is not a readable data set file: {error}") from error
    # A view would belong to the mapped file, whose pages the kernel may drop while a training needs them.
    owned = {name: array if array.flags.writeable else array.copy() for name, array in columns.items()}
    return {"columns": np.asarray(names, np.str_), **owned}
