"""Checks what user code returns as data: a part's features and targets.

No user code is called here. It may return anything, so each message names the value and its part.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.spec.data.file_limits import FileLimits
from workers.engine.arrays import Array
from workers.engine.data.encode import MAX_LABEL, missing
from workers.engine.data.reading.header import INDEX
from workers.engine.data.table import NUMBERS, check_names
from workers.engine.data.texts import TEXT
from workers.engine.errors import BadData

FEATURES = "x"
"""The name of features that are one array, or one column."""
MAX_AXES = 4
"""Of an array of features, with the rows."""


@dataclass(frozen=True)
class Pair:
    """One part's features and targets: a column each, or arrays.

    Attributes:
        columns: one feature array, (rows, …), or an Arrow column for each feature, by name.
        y: the targets, an Arrow column or an array (rows, targets).
    """

    columns: Mapping[str, Any]
    y: Any

    @property
    def rows(self) -> int:
        """The row count."""
        return len(self.y)

    @property
    def is_table(self) -> bool:
        """Return whether all features have one value for each row."""
        return not any(isinstance(column, np.ndarray) for column in self.columns.values())


def pair_of(returned: Any, what: str, limits: FileLimits) -> Pair:
    """Return a part's features and targets.

    Args:
        returned: by the code: `(x, y)`.
        what: the call, for messages, such as "load_data('train')".
        limits: the column limits.

    Raises:
        BadData: it is something else, or cannot be stored.
    """
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise BadData(
            f"{what} returned {_described(returned)}; return two values: the features x, the targets y"
        )
    x, y = returned
    columns = _features(x, what, limits)
    targets = _targets(y, what)
    lengths = {
        f"column {name!r} of x" if len(columns) > 1 else "x": len(column) for name, column in columns.items()
    }
    for name, rows in lengths.items():
        if rows != len(targets):
            raise BadData(
                f"{what} returned {rows:,} rows in {name} and {len(targets):,} in y; both need equally many"
            )
    if not len(targets):
        raise BadData(f"{what} returned no rows")
    return Pair(columns, targets)


def _described(value: Any) -> str:
    if value is None:
        return "nothing"
    kind = type(value).__name__
    if isinstance(value, tuple | list | dict):
        return f"a {kind} of {len(value)} values"
    shape = getattr(value, "shape", None)
    return f"a {kind} of the shape {tuple(shape)}" if isinstance(shape, tuple) else _one(kind)


def _one(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _features(x: Any, what: str, limits: FileLimits) -> dict[str, Any]:
    if isinstance(x, Mapping) or _is_frame(x):
        # The columns of a frame may have one name twice, which a dictionary would hide.
        pairs = [(str(name).strip(), column) for name, column in x.items()]
        pairs = [*(_levels(x, {name for name, _ in pairs}) if _is_frame(x) else ()), *pairs]
        if not pairs:
            raise BadData(f"{what} returned an x without columns")
        check_names([name for name, _ in pairs], f"x of {what}", limits)
        return {name: _column(column, f"column {name!r} of x", what) for name, column in pairs}
    array = _array(x, "x", what)
    if array.ndim == 1:
        return {FEATURES: _column(array, "x", what)}
    if array.ndim > MAX_AXES:
        raise BadData(f"x of {what} has the shape {array.shape}; rows have up to {MAX_AXES - 1} axes")
    if array.dtype.kind not in NUMBERS:
        raise BadData(
            f"x of {what} contains {_type_of(array)}; an array has numbers. Columns of texts, dates or "
            "several types can be returned as a pandas.DataFrame, or as a dictionary of columns"
        )
    if 0 in array.shape[1:]:
        raise BadData(f"x of {what} has the shape {array.shape}: its rows are empty")
    _refuse_gaps(array, "x", what)
    return {FEATURES: array}


def _levels(frame: Any, used: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield the levels of a frame's index, as they are columns of Parquet files.

    Numbers without a name only count the rows, and a column may have kept the name of a level.
    """
    index = frame.index
    for number, name in enumerate(index.names):
        values = index.get_level_values(number)
        is_count = index.nlevels == 1 and name is None and values.dtype.kind in "iu"
        label = INDEX if name is None else str(name).strip()
        label = label if index.nlevels == 1 or name is not None else f"{label}_{number + 1}"
        if not is_count and label not in used:
            yield label, values


def _targets(y: Any, what: str) -> Any:
    if _is_frame(y):
        y = y.to_numpy()
    array = _array(y, "y", what)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim > 2:
        raise BadData(
            f"y of {what} has the shape {array.shape}; each row has one value, or a list of numbers"
        )
    if array.ndim == 2:
        if array.dtype.kind not in NUMBERS or not array.shape[1]:
            raise BadData(
                f"y of {what} has the shape {array.shape} and contains {_type_of(array)}; use numbers"
            )
        _refuse_gaps(array, "y", what)
        return array
    column = _column(array, "y", what)
    values = values_of(column)
    _refuse_gaps(values, "y", what)
    if (
        values.dtype.kind == "T"
        and len(values)
        and (longest := int(np.strings.str_len(values).max())) > MAX_LABEL
    ):
        raise BadData(
            f"y of {what} has a text of {longest:,} characters; the name of a class has at most {MAX_LABEL}"
        )
    return column


def _is_frame(value: Any) -> bool:
    """Return whether a value is a pandas table, without importing pandas."""
    return type(value).__name__ == "DataFrame" and hasattr(value, "items")


def _array(value: Any, name: str, what: str) -> Array:
    """Return a value as an array, (rows, …).

    Raises:
        BadData: it is none.
    """
    if hasattr(value, "toarray"):
        raise BadData(
            f"{name} of {what} is a sparse matrix ({type(value).__name__}); return {name}.toarray()"
        )
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise BadData(f"{name} of {what} has masked values; fill them or remove these rows")
    if not isinstance(value, list | tuple) and not hasattr(value, "__array__"):
        raise BadData(
            f"{name} of {what} is {_described(value)}; return an array, with one entry for each row"
        )
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise BadData(f"{name} of {what} is no array: its rows have different shapes") from error
    if array.ndim == 0:
        raise BadData(
            f"{name} of {what} is {_described(value)}; return an array, with one entry for each row"
        )
    if array.dtype.kind == "V" and array.dtype.names is None:
        # Such as bfloat16 of JAX.
        array = array.astype(np.float32)
    return array


def _type_of(array: Array) -> str:
    """Return an array's values for a message; objects appear as the first one's type."""
    if array.dtype.kind != "O":
        return f"{array.dtype} values"
    first = next(iter(array.flat), None)
    return f"Python objects, the first {_one(type(first).__name__)}"


def _column(values: Any, name: str, what: str) -> Any:
    """Return values as an Arrow column with numbers, texts or times.

    Raises:
        BadData: they are something else.
    """
    import pyarrow as pa

    array = values if hasattr(values, "dtype") and hasattr(values, "__len__") else _array(values, name, what)
    if getattr(array, "ndim", 1) != 1:
        raise BadData(
            f"{name} of {what} has the shape {tuple(array.shape)}; a column has one value for each row"
        )
    try:
        column = pa.array(_for_arrow(array), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        types = _type_of(np.asarray(array))
        raise BadData(
            f"{name} of {what} contains {types}, which are not all of one type: {_first_line(error)}"
        ) from error
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_null(column.type) and len(column):
        raise BadData(f"{name} of {what} has no values")
    stored = _stored(column)
    if stored is None:
        types = _type_of(np.asarray(array))
        raise BadData(f"{name} of {what} contains {types}; supported are numbers, texts and dates")
    return stored


def _for_arrow(array: Any) -> Any:
    """Return values from which Arrow makes a column; it knows no texts with variable width."""
    kind = getattr(array.dtype, "kind", "")
    if kind == "T":
        return array.tolist()
    if kind == "S":
        return np.char.decode(array, "utf-8")
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _stored(column: Any) -> Any | None:
    """Return a column with a type that a project's data have; None for other values."""
    import pyarrow as pa

    kinds, kind = pa.types, column.type
    if kinds.is_dictionary(kind):
        return _stored(column.dictionary_decode())
    if kinds.is_decimal(kind) or kinds.is_float16(kind):
        return column.cast(pa.float64() if kinds.is_decimal(kind) else pa.float32())
    is_number = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)
    is_text = kinds.is_string(kind) or kinds.is_large_string(kind)
    is_date = kinds.is_date(kind) or kinds.is_timestamp(kind)
    return column if is_number or is_text or is_date or kinds.is_null(kind) else None


def values_of(column: Any) -> Array:
    """Return an Arrow column's values as an array, with NaN and "" for missing numbers and texts."""
    import pyarrow as pa

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.asarray([text or "" for text in column.to_pylist()], dtype=TEXT)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _refuse_gaps(array: Array, name: str, what: str) -> None:
    if not len(array):
        return
    # Times that are missing are objects, with None.
    is_object = array.dtype.kind == "O"
    rows = np.flatnonzero([value is None for value in array] if is_object else missing(array))
    if len(rows):
        raise BadData(
            f"{name} of {what} has missing or infinite values in {len(rows):,} of {len(array):,} rows, the "
            f"first in row {rows[0] + 1}; fill them or remove these rows"
        )
