"""Converts columns between NumPy and Arrow. Both directions keep every value and every NumPy type.

Numbers keep their bits, so missing ones are NaN in Arrow too. Missing texts are empty texts, and missing
times are null. Rows that are arrays are lists with a fixed size.
"""

import math
from typing import Any, cast

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.texts import TEXT, is_text

DTYPE, SHAPE = b"dtype", b"shape"
"""Metadata of a field: NumPy's name of the type of the values, and the shape of a row."""
_TIMES = frozenset({"s", "ms", "us", "ns"})
"""Units of times that Arrow has; the others are stored as integers."""


def to_arrow(column: Array) -> Any:
    """Return a column, (rows, …), as an Arrow array without nulls, except for missing times."""
    import pyarrow as pa

    if is_text(column):
        return pa.array(column.tolist(), pa.large_string())
    if column.ndim > 1:
        values = _plain(column.reshape(-1))
        return pa.FixedSizeListArray.from_arrays(pa.array(values), math.prod(column.shape[1:]))
    if column.dtype.kind == "M" and np.datetime_data(column.dtype)[0] in _TIMES:
        return pa.array(column, mask=np.isnat(column))
    return pa.array(_plain(column))


def field_of(field: str, column: Array, **metadata: str) -> Any:
    """Return a column's Arrow field, with what `to_numpy` needs.

    Args:
        field: its name.
        column: its first rows are enough.
        metadata: added to the field's.
    """
    import pyarrow as pa

    entries = {key.encode(): text.encode() for key, text in metadata.items()}
    entries[DTYPE] = b"text" if is_text(column) else _plain_dtype(column.dtype).str.encode()
    if column.ndim > 1:
        entries[SHAPE] = ",".join(map(str, column.shape[1:])).encode()
    return pa.field(field, to_arrow(column[:1]).type, nullable=column.dtype.kind == "M", metadata=entries)


def to_numpy(values: Any, field: Any) -> Array:
    """Return an Arrow column as the array from which `to_arrow` and `field_of` made it, (rows, …).

    Args:
        values: an Arrow array, or a chunked one.
        field: the file's field.

    Raises:
        ValueError: the field does not describe its values.
    """
    metadata = field.metadata or {}
    if metadata.get(DTYPE) == b"text":
        return texts_of(values)
    dtype = np.dtype(metadata.get(DTYPE, b"").decode())
    if SHAPE in metadata:
        shape = tuple(map(int, metadata[SHAPE].decode().split(",")))
        parts = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in _chunks(values)]
        return np.concatenate(parts).astype(dtype, copy=False).reshape(-1, *shape)
    array = np.asarray(values.to_numpy(zero_copy_only=False) if _is_array(values) else values.to_numpy())
    if dtype.kind == "M" and array.dtype.kind == "i":
        return array.view(dtype)
    return array.astype(dtype, copy=False)


def texts_of(values: Any) -> Array:
    """Return an Arrow text array as an array with variable width, (rows,)."""
    texts = np.empty(len(values), TEXT)
    start = 0
    # In parts, since a Python object takes more memory than its text.
    for chunk in _chunks(values):
        for first in range(0, len(chunk), 65_536):
            part = chunk.slice(first, 65_536)
            texts[start : start + len(part)] = part.to_pylist()
            start += len(part)
    return texts


def _chunks(values: Any) -> list[Any]:
    return [values] if _is_array(values) else list(values.chunks)


def _is_array(values: Any) -> bool:
    import pyarrow as pa

    return isinstance(values, pa.Array)


def _plain(values: Array) -> Array:
    """Return values with a type that Arrow has."""
    if values.dtype.kind == "M":
        return cast("Array", np.ascontiguousarray(values).view(np.int64))
    return np.ascontiguousarray(values, _plain_dtype(values.dtype))


def _plain_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    # Arrow has no floats above 64 bits, of which training uses at most 32.
    return np.dtype(np.float64) if dtype.kind == "f" and dtype.itemsize > 8 else dtype
