"""Recognizes numbers that are dates, such as 20211224; `unix_numbers` those that are Unix times."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jobs.spec.data.dates.formats import pattern_of
from workers.engine.arrays import Array
from workers.engine.data.dates import unix_numbers
from workers.engine.data.dates.columns import read_stated
from workers.engine.data.dates.facts import DateColumn, DateFacts
from workers.engine.data.dates.orders import Order, choose_order, is_even
from workers.features.date_texts import DIGIT_YEARS

DIGITS = ("%Y%m%d", "%Y%m%d%H%M%S", "%Y%m")
UNUSUAL = ("%y%m%d", "%d%m%y", "%m%d%y", "%d%m%Y", "%m%d%Y")
"""Formats that are only offered, and only under the name of a date."""
NANOSECONDS = "unix nanoseconds"
"""Of a column with gaps they are texts, since no number has so many digits beside these."""
MIN_SHARE = 0.9
"""Of the numbers that have this length, hardly any are dates by chance."""
MIN_DISTINCT = 2
NAME = re.compile(
    r"date|datum|fecha|ymd|(^|[ _.-])(day|dt|tag|jour|data|dob|time)($|[ _.-])|[a-z](Day|Dt|Time)$",
    re.IGNORECASE,
)
"""In columns with these names, whole numbers such as 20211224 are surely dates."""
NAME_OF_MONTHS = re.compile(
    r"year.?month|yyyy.?mm|(^|[ _.-])(period|month|monat|mes|mois|ym)($|[ _.-])", re.IGNORECASE
)
"""In these, numbers such as 202112 are surely months."""
PLACEHOLDERS = (0, 99_999_999)
"""Numbers that programs write for a date that there is not."""


class DateNumbers(NamedTuple):
    """The dates that a column's numbers could be, and whether name or steps make it sure."""

    column: DateColumn
    is_sure: bool


def recognize_numbers(numbers: Array, name: str) -> DateNumbers | None:
    """Return the dates that numbers could be, NaN being a gap; None if they are no dates."""
    for form in DIGITS:
        if not _are_in_range(numbers, pattern_of(form).width):
            continue
        column = read_numbers(numbers, form)
        years = column.moments.astype("datetime64[Y]").astype(np.int64) + 1970
        dates = column.moments[~np.isnat(column.moments)]
        in_range = (years[~np.isnat(column.moments)] >= DIGIT_YEARS[0]).all()
        written = column.facts.present - int(np.isin(numbers, PLACEHOLDERS).sum())
        are_dates = sum(column.facts.rows) >= MIN_SHARE * written and column.facts.are_most_dates
        if not in_range or not are_dates or len(np.unique(dates[:1000])) < MIN_DISTINCT:
            break
        known = NAME_OF_MONTHS if form == "%Y%m" else NAME
        return DateNumbers(column, known.search(name) is not None or is_even(dates))
    if (unix := unix_numbers.recognize_unix_times(numbers, name)) is not None:
        return DateNumbers(*unix)
    return _recognize_unusual(numbers) if NAME.search(name) is not None else None


def _recognize_unusual(numbers: Array) -> DateNumbers | None:
    """Return the dates that all numbers are in an order that is not usual for digits; they are never sure."""
    # Nearly every column fails at its first numbers.
    parts = (numbers[:1000], numbers)
    fitting = (
        form
        for form in UNUSUAL
        if all(_are_whole(part, 10 ** pattern_of(form).width) for part in parts)
        and read_numbers(parts[0], form).facts.misfits is None
    )
    return _choose_unusual(read_numbers(numbers, form) for form in fitting)


def recognize_digits(texts: Any, codes: Array, name: str) -> DateFacts | None:
    """Return how texts of digits, such as 080122, could be dates by their column's name; None for others.

    Args:
        texts: the different texts of a column, an Arrow array.
        codes: each row's position in `texts`.
        name: the column's name.
    """
    if NAME.search(name) is None and unix_numbers.NAME.search(name) is None:
        return None
    read = (read_stated(texts, codes, form) for form in (*UNUSUAL, NANOSECONDS))
    found = _choose_unusual(column for column in read if _are_recent(column))
    return None if found is None else replace(found.column.facts, is_digits=True, is_stated=False)


def _are_recent(column: DateColumn) -> bool:
    """Return whether the dates are plausible: as nanoseconds, few digits are the beginning of 1970."""
    first = np.datetime64("1980" if column.facts.format == NANOSECONDS else "1900")
    dates = column.moments[~np.isnat(column.moments)]
    return bool((dates >= first).all())


def _choose_unusual(columns: Iterable[DateColumn]) -> DateNumbers | None:
    """Return the most likely of the columns that have a date in every row with a value."""
    fitting = {column.facts.format: column for column in columns if column.facts.misfits is None}
    orders = [
        Order(form, column.moments, np.ones(len(column.moments)))
        for form, column in fitting.items()
        if len(np.unique(column.moments[~np.isnat(column.moments)][:1000])) >= MIN_DISTINCT
    ]
    if not orders:
        return None
    choice = choose_order(orders, np.ones(len(orders[0].moments)), is_settled=False)
    facts = fitting[choice.order.form].facts
    facts = replace(facts, others=choice.others, doubt="other numbers have so many digits too")
    return DateNumbers(DateColumn(choice.order.moments, facts), is_sure=False)


def _are_whole(numbers: Array, limit: int) -> bool:
    """Return whether numbers are whole, and have as many digits as a limit, or one less for a lost zero."""
    present = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers
    is_whole = numbers.dtype.kind != "f" or bool((present == np.round(present)).all())
    return bool(len(present)) and is_whole and present.min() >= limit // 1000 and present.max() < limit


def _are_in_range(numbers: Array, digits: int) -> bool:
    # Nearly every column fails at its first numbers.
    for part in (numbers[:1000], numbers):
        present = part[np.isfinite(part)] if part.dtype.kind == "f" else part
        present = present[~np.isin(present, PLACEHOLDERS)]
        if not len(present):
            return False
        unit = 10 ** (digits - 4)
        # As Python numbers: a float of 16 bits cannot be compared with these.
        low, high = present.min().item(), present.max().item()
        if low < DIGIT_YEARS[0] * unit or high >= (DIGIT_YEARS[1] + 1) * unit:
            return False
        if part.dtype.kind == "f" and (present != np.round(present)).any():
            return False
    return True


def read_numbers(numbers: Array, stated: str) -> DateColumn:
    """Return the dates that whole numbers are by a stated format; see `columns.read_stated`."""
    import pyarrow as pa

    if pattern_of(stated).is_unix:
        return unix_numbers.read_unix_times(numbers, stated)
    values, codes = np.unique(numbers, return_inverse=True)
    width = pattern_of(stated).width
    texts = [number_text(value, width) for value in values.tolist()]
    return read_stated(pa.array(texts, pa.large_string()), codes, stated)


def number_text(value: float, width: int) -> str:
    """Return a number as the text of a date with a number of digits; empty for a gap."""
    if value != value:
        return ""
    return f"{int(value):0{width}}" if float(value).is_integer() else str(value)
