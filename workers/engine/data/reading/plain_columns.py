"""Converts Arrow columns of bytes and of durations to texts and numbers, and describes those of time zones.

Some programs write texts as bytes without the type of texts.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.reading.exact_columns import without_types
from workers.engine.data.spilled import head

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def with_plain_columns(table: Any) -> Any:
    """Return an Arrow table with texts for bytes and for booleans with gaps, and seconds for durations.

    Bytes that are no UTF-8 become hexadecimal digits.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    changed = []
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_duration(field.type):
            plain = _seconds(column)
        elif pa.types.is_boolean(field.type) and column.null_count:
            # pandas would make the numbers 1 and 0 of them.
            plain = pc.cast(column, pa.large_string())
        elif _has_bytes(field.type):
            plain = _texts_of(column)
        else:
            continue
        table = table.set_column(place, field.name, plain)
        changed.append(field.name)
    return without_types(table, changed) if changed else table


def describe_durations(schema: Any) -> tuple[str, ...]:
    """Return sentences on the columns of an Arrow schema that are read as seconds."""
    import pyarrow as pa

    names = [field.name for field in schema if pa.types.is_duration(field.type)]
    return tuple(f"Column {name!r} has durations, which are read as numbers of seconds." for name in names)


SEARCHED = 10_000


def describe_zones(schema: Any, columns: Mapping[str, Array]) -> Iterator[str]:
    """Yield sentences on the columns of an Arrow schema whose times have a zone other than UTC.

    Args:
        schema: of the file.
        columns: by name, (rows,) each, in UTC.
    """
    import pandas as pd
    import pyarrow as pa

    for field in schema:
        if not pa.types.is_timestamp(field.type) or field.type.tz is None or field.name not in columns:
            continue
        moments = head(columns, field.name, SEARCHED)
        # Zones change no date beyond the calendar of pandas.
        moments = moments[(moments >= np.datetime64("1900")) & (moments < np.datetime64("2200"))]
        times = pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(field.type.tz)
        local = times.tz_localize(None).to_numpy(moments.dtype)
        if not (differs := local != moments).any():
            continue
        # At best one that is on another day.
        is_other_day = local.astype("datetime64[D]") != moments.astype("datetime64[D]")
        place = int(np.argmax(is_other_day if is_other_day.any() else differs))
        there, in_utc = (str(time[place])[:16].replace("T", " ") for time in (local, moments))
        yield (
            f"Column {field.name!r} has times of the zone {field.type.tz}, and all of its dates are in UTC: "
            f"{there} there is {in_utc}. In a request, state the offset, as in "
            f"{times[place].isoformat(timespec='minutes')}; a time without an offset is one in UTC."
        )


def _seconds(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    ticks = pc.cast(pc.cast(column, pa.int64()), pa.float64(), safe=False)
    return pc.divide(ticks, float(PER_SECOND[column.type.unit]))


def _has_bytes(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    names = ("binary", "large_binary", "binary_view", "fixed_size_binary")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def _texts_of(column: Any) -> Any:
    import pyarrow as pa

    kind = pa.large_string()
    if pa.types.is_dictionary(column.type):
        kind = pa.dictionary(column.type.index_type, kind)
    try:
        chunks = [_converted(chunk, _decoded) for chunk in column.chunks]
    # In one way for the whole column.
    except pa.ArrowInvalid:
        chunks = [_converted(chunk, _hexadecimal) for chunk in column.chunks]
    return pa.chunked_array(chunks, kind)


def _converted(chunk: Any, convert: Callable[[Any], Any]) -> Any:
    """Return bytes as texts; the different ones alone if they are a dictionary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(chunk.type):
        return pa.DictionaryArray.from_arrays(chunk.indices, _converted(chunk.dictionary, convert))
    if pa.types.is_fixed_size_binary(chunk.type) or pa.types.is_binary_view(chunk.type):
        chunk = pc.cast(chunk, pa.large_binary())
    return convert(chunk)


def _decoded(chunk: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.cast(chunk, pa.large_string())


def _hexadecimal(chunk: Any) -> Any:
    import pyarrow as pa

    values = (None if value is None else value.hex() for value in chunk.to_pylist())
    return pa.array(values, pa.large_string())
