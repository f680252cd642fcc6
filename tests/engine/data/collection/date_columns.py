"""Makes cases of files with one column of dates."""

import datetime
from collections.abc import Sequence
from typing import Any

from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows

DAY, NIGHT = "2021-12-24T00:00:00.000000", "2021-12-24T15:05:00.000000"


def column_case(
    name: str,
    texts: Sequence[str],
    dates: Sequence[str | None] | None = None,
    *,
    column: str = "d",
    kind: Any = "date",
    values: Sequence[Any] | None = None,
    missing: int = 0,
    **expected: Any,
) -> TableCase:
    """Return the case of a file with one column of texts; `dates` may lack the time of midnight."""
    rows = [f'"{text}",{row},{row % 2}' for row, text in enumerate(texts)]
    read: tuple[Any, ...] | None = tuple(values) if values is not None else None
    if dates is not None:
        read = tuple(None if date is None else _moment(date) for date in dates)
    return TableCase(
        f"{name}.csv",
        csv_rows(f"{column},n,y", *rows),
        {column: ExpectedColumn(kind, missing=missing, values=read)},
        **expected,
    )


def _moment(date: str) -> str:
    return datetime.datetime.fromisoformat(date).isoformat(timespec="microseconds")


def one_format(name: str, text: str, date: str = NIGHT) -> TableCase:
    """Return the case of a column whose values are all written as one of 24 December 2021."""
    return column_case(f"format_{name}", [text] * 3, [date] * 3)


def whole_numbers(name: str, *texts: str) -> TableCase:
    """Return the case of a column of whole numbers, although its name is `date`."""
    return column_case(name, texts, kind="integer", column="date")
