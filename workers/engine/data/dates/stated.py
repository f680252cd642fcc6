"""Reads a column as dates that a person has given the type date, by a stated format or by its own."""

from dataclasses import replace
from typing import Any

import numpy as np

from jobs.spec.data.dates.formats import ISO, OR, example_of, pattern_of
from jobs.spec.data.dates.unix_times import UNITS
from jobs.spec.data.gap_words import is_gap
from workers.engine.arrays import Array
from workers.engine.data.dates.columns import read_stated, recognize_dates
from workers.engine.data.dates.facts import DateColumn
from workers.engine.data.dates.numbers import DIGITS, read_numbers, recognize_numbers
from workers.engine.data.dates.values import PART_ROWS
from workers.engine.data.texts import is_text
from workers.engine.errors import BadData


def stated_dates(column: Array, name: str, date_format: str | None) -> DateColumn:
    """Return the dates in texts, or in numbers such as 20211224.

    Raises:
        BadData: there is none.
    """
    if is_text(column):
        texts, codes = distinct_of(column)
        dates = (
            recognize_dates(texts, codes) if date_format is None else read_stated(texts, codes, date_format)
        )
    else:
        dates = _dates_of_numbers(column, name, date_format)
    if dates is not None and any(dates.facts.rows):
        return dates
    row = int(np.argmax(np.asarray([not is_gap(str(value)) for value in column.tolist()])))
    wanted = f"such as {example_of(date_format or ISO)}"
    more = "" if date_format is not None else "; state their format as date_format, for example %d/%m/%Y"
    raise BadData(
        f"column {name!r} is not of type date, {wanted}: row {row + 1} has {column[row]!s}, and no other row "
        f"has such a date{more}"
    )


def _dates_of_numbers(column: Array, name: str, date_format: str | None) -> DateColumn | None:
    numbers = column.dtype.kind in "iuf"
    # The type makes sure what else the name of a column does.
    if numbers and date_format is None and (found := recognize_numbers(column, "date")) is not None:
        return DateColumn(found.column.moments, replace(found.column.facts, is_digits=True, is_stated=True))
    stated = [date_format] if date_format is not None else [*DIGITS]
    formats = [form for form in stated if OR not in form and pattern_of(form).is_digits]
    if not numbers or not formats:
        raise BadData(
            f"column {name!r} contains numbers, which are not dates; choose number or integer, or state a "
            f"date_format of digits alone, such as {example_of(DIGITS[0])} or {example_of(UNITS[0].format)}"
        )
    read = [read_numbers(column, form) for form in formats]
    best = max(read, key=lambda dates: dates.facts.share)
    return DateColumn(best.moments, replace(best.facts, is_digits=True, is_stated=True))


def as_arrow(texts: Array) -> Any:
    """Return texts as an Arrow array."""
    import pyarrow as pa

    # In parts, since a Python object takes more memory than its text.
    starts = range(0, len(texts), PART_ROWS)
    parts = [pa.array(texts[start : start + PART_ROWS].tolist(), pa.large_string()) for start in starts]
    return pa.chunked_array(parts, pa.large_string()).combine_chunks()


def distinct_of(column: Array) -> tuple[Any, Array]:
    """Return a text column's different texts as an Arrow array, and each row's place in it."""
    encoded = as_arrow(column).dictionary_encode()
    return encoded.dictionary, np.asarray(encoded.indices.to_numpy())
