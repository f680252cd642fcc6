"""Finds dates that are far from all others of their column, such as 9999-12-31 in place of a missing one.

As numbers, such a date makes all others nearly equal.
"""

import datetime
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.dates.formats import formats_of, reads_iso, write_date
from jobs.spec.data.offers import Offer
from workers.engine.arrays import Array
from workers.engine.data.schema import ColumnSchema

MIN_YEARS, SURE_YEARS = 30, 1_000
MIN_SPANS = 5
"""A date is far from the others by at least so many years and spans of these, or surely by more years."""
MOST_FAR = 3
LAST_YEAR = 2300
"""Dates after it are rather counted in another calendar."""
BUDDHIST_YEARS = 543
_DAYS_OF_YEAR = 365.25


class FarDates(NamedTuple):
    """Sentences about columns whose dates are all far away, and offers to take single dates as missing."""

    sentences: list[str]
    offers: list[Offer]


class _FarDate(NamedTuple):
    text: str
    rows: int
    years: int


def find_far_dates(columns: Mapping[str, Array], schema: Mapping[str, ColumnSchema]) -> FarDates:
    """Return the doubts about dates that are far from all others, or from today.

    Args:
        columns: by name, (rows,) each, with the types of `schema`.
        schema: role and type by column name.
    """
    found = FarDates([], [])
    for name, column in schema.items():
        if column.type != "date" or column.role in ("id", "ignore"):
            continue
        dates = columns[name]
        present = dates[~np.isnat(dates)].astype("datetime64[D]")
        if len(present) and present.min() >= np.datetime64(f"{LAST_YEAR}-01-01"):
            found.sentences.append(
                f"Column {name!r} has no date before {present.min()}. If its years are counted in another "
                f"calendar, correct them in the file: those of the Buddhist calendar are {BUDDHIST_YEARS} "
                "years ahead."
            )
        elif far := _far_dates(present):
            found.offers.append(_offer(name, column, far, len(dates)))
    return found


def _far_dates(dates: Array) -> list[_FarDate]:
    """Return the first or last dates, (rows,) in days, that are far from all others."""
    far: list[_FarDate] = []
    for _ in range(MOST_FAR):
        found = next((one for last in (True, False) if (one := _far_date(dates, is_last=last))), None)
        if found is None:
            break
        far.append(found)
        dates = dates[dates != np.datetime64(found.text)]
    return far


def _far_date(dates: Array, *, is_last: bool) -> _FarDate | None:
    """Return the last or the first date if it is far from the others."""
    if not len(dates):
        return None
    date = dates.max() if is_last else dates.min()
    others = dates[dates != date]
    if not len(others):
        return None
    first, last = others.min(), others.max()
    distance = int(abs(date - (last if is_last else first)).astype(np.int64))
    span = int((last - first).astype(np.int64))
    years = int(distance / _DAYS_OF_YEAR)
    if years < SURE_YEARS and (years < MIN_YEARS or distance < MIN_SPANS * span):
        return None
    return _FarDate(str(date), len(dates) - len(others), years)


def _written(text: str, column: ColumnSchema) -> str:
    """Return a day in ISO 8601, or by the column's format if its texts look like ISO 8601."""
    if column.dates is None or reads_iso(column.dates.format):
        return text
    return write_date(datetime.datetime.fromisoformat(text), formats_of(column.dates.format)[0])


def _offer(name: str, column: ColumnSchema, far: list[_FarDate], rows: int) -> Offer:
    texts = [_written(one.text, column) for one in far]
    named = ", ".join(f"{one.text} in {one.rows:,} of {rows:,} rows" for one in far)
    years = min(one.years for one in far)
    is_one = len(far) == 1
    return Offer(
        finding=f"Column {name!r}: {named} {'is' if is_one else 'are'} more than {years:,} years away from "
        f"all other dates, which as numbers {'it makes' if is_one else 'they make'} nearly equal.",
        label=f"Take {', '.join(texts)} as missing",
        change=ColumnRequest(name=name, gap_words=tuple(dict.fromkeys((*(column.gap_words or ()), *texts)))),
    )
