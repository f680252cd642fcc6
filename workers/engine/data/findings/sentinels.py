"""Finds numbers in the place of a missing value, such as -999 and 9999, and offers to take them as gaps.

As a number, such a value makes all others nearly equal. Only the smallest or the largest value of a column
may be one, and only if it has a usual form and lies outside of all others.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.gap_words import named_words
from jobs.spec.data.offers import Offer
from workers.engine.arrays import Array
from workers.engine.data.findings.writings import counts_of
from workers.engine.data.schema import ColumnSchema

MOST_SENTINELS = 3
MOST_OFFERS = 30
MOST_CLASSES = 20
"""A target with so many different numbers has classes."""
FEW_ROWS = 2
"""A short form, such as 99 and -1, has at least so many rows."""
LONG = 3
"""Digits of a form that no measured value has by chance."""
FEWEST_COUNTED, FEWEST_FROM_ONE = 10, 3
"""Beside so many different whole numbers from 0 up, or from 1 up, -1 is none of them, and no class."""
_AMONG_WORDS = re.compile(r"-(1|9|99+|88+|77+)|999+")
_NINES = re.compile(r"-?(9+|8{2,}|7{2,})(\.9+|\.0)?")
_ENDS = frozenset({-(2.0**31), 2.0**31 - 1, -(2.0**63), 2.0**63, -(2.0**15)})
"""The ends of whole numbers of computers."""
_HUGE = 1e20
"""Grids of the weather and of maps have 1e20 or 9.97e36 where no value is known."""
_COUNTED = "iuf"


class _Sentinel(NamedTuple):
    text: str
    number: float
    rows: int


def offer_sentinels(columns: Mapping[str, Array], schema: Mapping[str, ColumnSchema]) -> list[Offer]:
    """Return the offers to take numbers far outside of the others as missing values.

    Args:
        columns: by name, (rows,) each, with the types of `schema`.
        schema: role and type by column name.
    """
    offers: list[Offer] = []
    for name, column in schema.items():
        if len(offers) == MOST_OFFERS:
            break
        if column.role in ("id", "ignore", "split"):
            continue
        if column.type in ("number", "integer"):
            values = columns[name]
            if values.ndim != 1 or values.dtype.kind not in _COUNTED:
                continue
            present = values[np.isfinite(values)] if values.dtype.kind == "f" else values
            if column.role == "target" and len(np.unique(present[:1000])) <= MOST_CLASSES:
                continue
            if found := _sentinels(present):
                offers.append(_offer(name, column, found, len(values)))
        elif column.type == "category" and column.role == "feature":
            counts = counts_of(columns, name)
            rows = sum(counts.values())
            if found := [*_among_words(counts)]:
                offers.append(_offer(name, column, found, rows))
    return offers


def _among_words(counts: Mapping[str, int]) -> Iterator[_Sentinel]:
    """Yield numbers such as -99 in a category whose other values are no numbers."""
    numbers = [text for text in counts if _number(text) is not None]
    if len(numbers) > MOST_SENTINELS or len(numbers) + FEW_ROWS > len(counts):
        return
    found = [text for text in numbers if _AMONG_WORDS.fullmatch(text)]
    if len(found) == len(numbers):
        for text in found:
            yield _Sentinel(text, float(text), counts[text])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _sentinels(numbers: Array) -> list[_Sentinel]:
    """Return the numbers written in the place of missing values, of a column without gaps, (rows,)."""
    found: list[_Sentinel] = []
    while len(numbers) and len(found) < MOST_SENTINELS:
        one = next((end for last in (False, True) if (end := _sentinel(numbers, is_last=last))), None)
        if one is None:
            break
        found.append(one)
        numbers = numbers[numbers != one.number]
    return found


def _sentinel(numbers: Array, *, is_last: bool) -> _Sentinel | None:
    """Return the largest or the smallest number if it is written for a gap."""
    number = numbers.max() if is_last else numbers.min()
    text = _text(float(number))
    digits = sum(map(str.isdigit, text))
    is_usual = _NINES.fullmatch(text) is not None or text == "-1"
    is_end = float(number) in _ENDS or abs(float(number)) >= _HUGE
    # Nearly every column has other ends, so the whole of it is seldom compared.
    if not (is_usual or is_end):
        return None
    is_other = numbers != number
    rows = len(numbers) - int(is_other.sum())
    others = numbers[is_other]
    is_long = is_end or digits >= LONG
    if len(others) < FEW_ROWS or (rows < FEW_ROWS and not is_long):
        return None
    low, high = float(others.min()), float(others.max())
    distance = float(number) - high if is_last else low - float(number)
    is_alone = number < 0 <= low and (is_long or digits > 1 or _are_counted(others, text))
    # A short one is farther away than any measure would be: 99 beside 1 to 5.
    spans = 1 if is_long or number < 0 else 2
    is_far = digits > 1 and distance >= spans * (high - low) and distance > max(abs(low), abs(high), 1)
    return _Sentinel(text, float(number), rows) if is_alone or is_far else None


def _are_counted(numbers: Array, text: str) -> bool:
    """Return whether numbers are whole, and too many of them differ to be classes beside -1 or -9."""
    if (numbers != np.round(numbers)).any():
        return False
    # Classes such as -1 and 1, or -1, 0 and 1, are written with it.
    fewest = FEWEST_COUNTED if numbers.min() == 0 else FEWEST_FROM_ONE
    return text == "-9" or len(np.unique(numbers)) >= fewest


def _text(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < _HUGE else f"{number!r}"


def _offer(name: str, column: ColumnSchema, found: list[_Sentinel], rows: int) -> Offer:
    texts = [one.text for one in found]
    named = named_words(texts, {one.text: one.rows for one in found}).replace("'", "")
    is_one, is_number = len(found) == 1, column.type in ("number", "integer")
    outside = "far from all other numbers" if is_number else "a number among words"
    stated = column.gap_words if column.gap_words is not None else [word for word, _ in column.gap_counts]
    taken = "Leave out the rows with" if column.role == "target" else "Take"
    return Offer(
        finding=f"{'Target' if column.role == 'target' else 'Column'} {name!r}: {named} of {rows:,} rows "
        f"{'is' if is_one else 'are'} {outside}. If {'it means' if is_one else 'they mean'} a "
        f"missing value, take {'it' if is_one else 'them'} as one; requests are then read in the same way.",
        label=f"{taken} {', '.join(texts)}" + ("" if column.role == "target" else " as missing"),
        change=ColumnRequest(name=name, gap_words=tuple(dict.fromkeys((*stated, *texts)))),
    )
