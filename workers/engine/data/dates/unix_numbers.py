"""Recognizes numbers that are Unix times, such as 1700000000.

Under the name of a date they are read as dates at once, as 20211224 is, with the offer to keep the numbers:
`to_json` of pandas writes every date so, and as 32-bit floats such numbers are equal for two minutes. Under
another name they stay numbers, since identifiers and counts have ten digits too; the dates are then an offer,
if all are between 2000 and next year and do not count the rows. Under the name of a date, earlier and later
ones are an offer too, since a `time` of 500,000,000 may be one of nanoseconds.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from jobs.spec.data.dates.unix_times import BY_FORMAT, FIELD, UNITS, UnixUnit
from workers.engine.arrays import Array
from workers.engine.data.dates.columns import read_stated
from workers.engine.data.dates.facts import DateColumn, DateFacts
from workers.features.date_texts import DATE, NO_DATE, moments_of, read_dates

NAME = re.compile(
    r"(?<!candi)(?<!man)(?<!vali)(?<!qui)(?<!soli)date|datum|fecha|timestamp|epoch|unix|posix|created|updated|modified|login"
    r"|(^|[ _.-])(day|dt|tag|jour|dob|time|times|ts|at|on)($|[ _.-])|[a-z](?-i:Day|Dt|Time|At|On|Ts)$",
    re.IGNORECASE,
)
"""In columns with these names, numbers in the range of Unix times surely are some."""
IDENTIFIER = re.compile(r"(^|[ _.-])(?i:id|ids|uuid|no|nr|num)$|[a-z](Id|ID|No|Nr)$")
FIRST_YEAR, LATER_YEARS = "2000", 10
"""Numbers are surely dates, under the name of one, from this year to so many years after today."""
NAMED_YEARS = ("1980", "2100")
"""Plausible years under the name of a date."""
PART_ROWS = 65_536
COMPARED = 1_000
_LIMITS = {"seconds": 10**12, "milliseconds": 10**15, "microseconds": 10**18, "nanoseconds": 9 * 10**18}


def recognize_unix_times(numbers: Array, name: str) -> tuple[DateColumn, bool] | None:
    """Return the dates that numbers are as Unix times, and whether their name makes that sure.

    Args:
        numbers: of a column, (rows,), NaN being a gap. Zeros may be missing dates.
        name: the column's name.
    """
    is_named = NAME.search(name) is not None and IDENTIFIER.search(name) is None
    unit = _unit(numbers, FIRST_YEAR, _after_today(LATER_YEARS)) if is_named else None
    is_sure = unit is not None
    if unit is None:
        unit = _unit(numbers, *(NAMED_YEARS if is_named else (FIRST_YEAR, _after_today(1))))
    if unit is None or (not is_named and _counts_rows(numbers)):
        return None
    column = read_unix_times(numbers, unit.format)
    return (column, is_sure) if column.facts.misfits is None else None


def _after_today(years: int) -> str:
    return str(np.datetime64("now", "D") + np.timedelta64(366 * years, "D"))


def read_unix_times(numbers: Array, stated: str) -> DateColumn:
    """Return the dates that numbers are by a format of Unix times; see `columns.read_stated`."""
    unit = BY_FORMAT[stated]
    if numbers.dtype.kind in "iu":
        is_whole = np.abs(numbers.astype(np.float64)) < _LIMITS[unit.name]
        is_gap = np.zeros(len(numbers), bool)
    else:
        is_gap = np.isnan(numbers)
        is_whole = np.isfinite(numbers) & (np.abs(numbers, dtype=np.float64) < _LIMITS[unit.name])
        is_whole[is_whole] = numbers[is_whole] == np.round(numbers[is_whole])
    moments = np.full(len(numbers), NO_DATE, DATE)
    moments[is_whole] = _moments(numbers[is_whole].astype(np.int64), unit)
    # A request has the digits of a fraction.
    others = np.flatnonzero(~is_whole & ~is_gap)
    for start in range(0, len(others), PART_ROWS):
        part = others[start : start + PART_ROWS]
        moments[part] = read_dates([str(value) for value in numbers[part].tolist()], stated)
    if (np.isnat(moments) & ~is_gap).any():
        return _with_misfits(numbers, stated)
    present = int((~is_gap).sum())
    facts = DateFacts(stated, present, (present,), is_digits=True, is_stated=True, is_whole=not len(others))
    return DateColumn(moments, replace(facts, span=_span(moments)))


def _moments(ticks: Array, unit: UnixUnit) -> Array:
    zero = np.zeros(len(ticks), np.int64)
    negative = (ticks < 0).astype(np.int64)
    return moments_of(
        {"negative": negative, f"{FIELD}{unit.name}": np.abs(ticks), "fraction": zero}, len(ticks)
    )


def _span(moments: Array) -> tuple[str, str] | None:
    dates = moments[~np.isnat(moments)]
    if not len(dates):
        return None
    first, last = (str(date)[:16].replace("T", " ") for date in (dates.min(), dates.max()))
    return first, last


def _with_misfits(numbers: Array, stated: str) -> DateColumn:
    """Return the dates of numbers of which some are none, with these and their rows."""
    import pyarrow as pa

    values, codes = np.unique(numbers, return_inverse=True)
    texts = ["" if value != value else _text(value) for value in values.tolist()]
    column = read_stated(pa.array(texts, pa.large_string()), codes, stated)
    return DateColumn(column.moments, replace(column.facts, is_digits=True, span=_span(column.moments)))


def _text(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _unit(numbers: Array, first: str, last: str) -> UnixUnit | None:
    """Return the unit in which all numbers are between two dates; None if there is none."""
    # Nearly every column fails at its first numbers.
    for part in (numbers[:COMPARED], numbers):
        present = part[np.isfinite(part)] if part.dtype.kind == "f" else part
        present = present[present != 0]
        if not len(present) or part.dtype.itemsize < np.dtype(np.int64).itemsize:
            return None
        ends = (present.min().item(), present.max().item())
        if (unit := _unit_between(ends, first, last)) is None:
            return None
    return unit


def _unit_between(ends: tuple[float, float], first: str, last: str) -> UnixUnit | None:
    low, high = (int(np.datetime64(text, "s").astype(np.int64)) * 10**9 for text in (first, last))
    fitting = (
        unit for unit in UNITS if low <= ends[0] * unit.nanoseconds and ends[1] * unit.nanoseconds <= high
    )
    return next(fitting, None)


def _counts_rows(numbers: Array) -> bool:
    """Return whether the first numbers differ by one, or are all the same, as identifiers and constants."""
    steps = np.unique(np.diff(numbers[:COMPARED]))
    return len(steps) <= 1 and bool(np.isin(steps, (0, 1)).all())
