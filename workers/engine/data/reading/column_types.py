"""Recognizes a column's type and converts its values: booleans and dates that were written as texts.

`typed_columns` reads texts as numbers.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from jobs.spec.data.boolean_words import boolean_of
from jobs.spec.data.columns import ColumnType
from jobs.spec.data.features import MAX_ONE_HOT
from jobs.spec.data.gap_words import is_gap
from jobs.spec.data.number_format import NumberFormat
from jobs.spec.data.offers import Misfits, Offer
from workers.engine.arrays import Array
from workers.engine.data.dates.columns import may_have_dates, recognize_dates
from workers.engine.data.dates.facts import DateFacts
from workers.engine.data.dates.numbers import recognize_numbers
from workers.engine.data.dates.stated import as_arrow, distinct_of, stated_dates
from workers.engine.data.dates.zones import find_dates_with_words, may_have_dates_with_words
from workers.engine.data.reading.number_texts import format_of, look_at, read_numbers
from workers.engine.data.texts import is_text, text_array
from workers.engine.data.words import Words
from workers.engine.errors import BadData

TRUE, FALSE = "true", "false"
MIN_WORDS = 3
"""Texts have on average at least this many words; shorter ones are categories."""
MIN_DISTINCT = 0.2
"""The values of a text column differ at least in this share of the rows."""
KNOWN_AT_FIRST = 100
"""Values whose form decides whether a conversion of the whole column is tried."""
LONG_CATEGORY = 500
"""A column with a longer value contains texts."""


class TypedColumn(NamedTuple):
    """A column whose values have one type; see `workers.features.values` for the arrays.

    Attributes:
        values: its values; None if they are those of the table.
        type: their type.
        number_format: how texts were numbers; see `jobs.spec.data.profile.Column`.
        gap_words: the words that were missing values; None for the usual ones.
        gap_counts: the words in the file that are missing values, with the number of their rows.
        misfits: values that do not have the type, and count as missing.
        findings: sentences about how it was read.
        offers: other readings.
        dates: how its texts or numbers are dates, or could be, although it has another type.
    """

    values: Array | None
    type: ColumnType
    number_format: NumberFormat | None = None
    gap_words: tuple[str, ...] | None = None
    gap_counts: tuple[tuple[str, int], ...] = ()
    misfits: Misfits | None = None
    findings: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    dates: DateFacts | None = None


def recognize(column: Array, name: str | None = None, *, are_gaps_stated: bool = False) -> TypedColumn:
    """Return a column, (rows,), with its type, converted from texts if all have that type.

    Args:
        column: as it was read.
        name: the column's name, since it may show that numbers are dates; None if they cannot be.
        are_gaps_stated: whether only empty texts are missing, since the words were stated.
    """
    match column.dtype.kind:
        case "b":
            return TypedColumn(column, "boolean")
        case "i" | "u":
            return with_dates(TypedColumn(column, "integer"), name)
        case "f":
            return with_dates(TypedColumn(column, "number"), name)
        case "M":
            return TypedColumn(column, "date")
    return _recognize_texts(column, are_gaps_stated=are_gaps_stated)


def with_dates(typed: TypedColumn, name: str | None) -> TypedColumn:
    """Return a column of numbers as dates if it surely has some, as 20211224; else with possible ones."""
    if name is None or typed.values is None or (found := recognize_numbers(typed.values, name)) is None:
        return typed
    facts = replace(found.column.facts, is_digits=True, is_stated=False)
    if found.is_sure:
        return typed._replace(values=found.column.moments, type="date", number_format=None, dates=facts)
    return typed._replace(dates=facts)


def _recognize_texts(column: Array, *, are_gaps_stated: bool) -> TypedColumn:
    present = column[column != ""]
    if not len(present):
        return TypedColumn(np.full(len(column), np.nan), "number")
    # Nearly every column fails at its first values, so the whole of it is seldom tried.
    head = _without_gaps(present)
    for kind, accepts, convert in _CONVERSIONS if head else ():
        if all(map(accepts, head)) and (converted := convert(column, are_gaps_stated)) is not None:
            return TypedColumn(converted, kind)
    typed = _dates(present, None, lambda: distinct_of(column))
    if typed.type == "date":
        return typed
    return typed._replace(values=column, type="text" if _is_prose(present) else "category")


def recognize_words(words: Words, *, are_gaps_stated: bool = False) -> TypedColumn:
    """Return a text column's type and its values; as `recognize` does."""
    is_known = words.values != ""
    if not is_known.any():
        return TypedColumn(np.full(len(words.codes), np.nan), "number")
    head = _first_known(words)
    for kind, accepts, convert in _CONVERSIONS if head else ():
        if all(map(accepts, head)) and (converted := convert(words.values, are_gaps_stated)) is not None:
            return TypedColumn(converted[words.codes], kind)
    present = words.codes[is_known[words.codes]]
    typed = _dates(words.values, present, lambda: (as_arrow(words.values), words.codes))
    if typed.type == "date":
        return typed
    rows = np.bincount(words.codes, minlength=len(words.values))[is_known]
    return typed._replace(type="text" if _is_prose(words.values[is_known], rows) else "category")


def _dates(texts: Array, codes: Array | None, distinct: Callable[[], tuple[Any, Array]]) -> TypedColumn:
    """Return a column of dates; one of categories, with its possible dates, if too few are certain.

    Args:
        texts: of all rows with a value; each different one once if `codes` are given.
        codes: each row's position in `texts`.
        distinct: returns the arguments of `recognize_dates`.
    """
    if may_have_dates(texts, codes) and (dates := recognize_dates(*distinct())) is not None:
        if dates.facts.are_most_dates:
            return TypedColumn(dates.moments, "date", dates=dates.facts)
        return TypedColumn(None, "category", dates=dates.facts)
    may_have_words = may_have_dates_with_words(texts, codes)
    return TypedColumn(None, "category", dates=find_dates_with_words(*distinct()) if may_have_words else None)


def _without_gaps(texts: Array) -> list[str]:
    """Return the first values that are no words for a gap."""
    parts = (texts[start : start + KNOWN_AT_FIRST] for start in range(0, len(texts), KNOWN_AT_FIRST))
    present = (text for part in parts for text in part.tolist() if not is_gap(text))
    return list(islice(present, KNOWN_AT_FIRST))


def _first_known(words: Words) -> list[str]:
    """Return the values in the first rows that have one, apart from words for a gap."""
    is_known = np.asarray([not is_gap(text) for text in words.values.tolist()], bool)
    for count in (10 * KNOWN_AT_FIRST, len(words.codes)):
        codes = words.codes[:count]
        if len(present := codes[is_known[codes]]) >= KNOWN_AT_FIRST:
            break
    return [str(text) for text in words.values[present[:KNOWN_AT_FIRST]].tolist()]


def _is_prose(texts: Array, rows: Array | None = None) -> bool:
    """Return whether values are texts rather than category names.

    Args:
        texts: the values; each different one once if `rows` are given.
        rows: how many rows have each value.
    """
    if int(np.strings.str_len(texts).max()) > LONG_CATEGORY:
        return True
    count = len(texts) if rows is None else int(rows.sum())
    blanks = np.strings.count(texts, " ")
    if int((blanks if rows is None else blanks * rows).sum()) / count + 1 < MIN_WORDS:
        return False
    distinct = len(np.unique(texts))
    return distinct > MAX_ONE_HOT and distinct > MIN_DISTINCT * count


def convert(
    column: Array,
    kind: ColumnType,
    name: str,
    date_format: str | None = None,
    *,
    are_gaps_stated: bool = False,
) -> TypedColumn:
    """Return a column with values in the type that a person chose.

    Args:
        column: as it was read, (rows,).
        kind: the type.
        name: the column's name, for messages.
        date_format: the format of dates that a person stated.
        are_gaps_stated: whether only empty texts are missing, since the words were stated.

    Raises:
        BadData: a value does not have this type; the message names its row. Of dates none is one.
    """
    if kind in ("category", "text"):
        return TypedColumn(column if is_text(column) else text_array(map(_plain, column.tolist())), kind)
    if kind == "date" and column.dtype.kind != "M":
        dates = stated_dates(column, name, date_format)
        return TypedColumn(dates.moments, "date", dates=dates.facts)
    if is_text(column):
        column = _converted_texts(column, kind, name, are_gaps_stated=are_gaps_stated)
    if kind != "date" and column.dtype.kind == "M":
        raise BadData(f"column {name!r} contains dates; choose date or category")
    _check_numbers(column, kind, name)
    return TypedColumn(column, kind)


def _check_numbers(column: Array, kind: ColumnType, name: str) -> None:
    """Check that numbers have a type whose other values a request could not send.

    Raises:
        BadData: one is not.
    """
    if kind == "integer" and column.dtype.kind == "f":
        wrong = np.isfinite(column) & (column != np.round(column))
    elif kind == "boolean" and column.dtype.kind != "b":
        wrong = np.isfinite(column) & ~np.isin(column, (0, 1))
    else:
        return
    if wrong.any():
        row = int(wrong.argmax())
        raise BadData(f"column {name!r} is not of type {kind}: row {row + 1} has {column[row]!s}")


def _converted_texts(column: Array, kind: ColumnType, name: str, *, are_gaps_stated: bool) -> Array:
    if kind in ("number", "integer"):
        return _converted_numbers(column, kind, name)
    converted = _as_booleans(column, are_gaps_stated, boolean_of)
    if converted is None:
        rows = (
            row
            for row, text in enumerate(column.tolist())
            if not _is_absent_boolean(text, are_gaps_stated) and boolean_of(text) is None
        )
        row = next(rows, 0)
        raise BadData(f"column {name!r} is not of type {kind}: row {row + 1} has {column[row]!s}")
    return converted


def _converted_numbers(column: Array, kind: ColumnType, name: str) -> Array:
    form = format_of(look_at((text, 1) for text in column.tolist() if not is_gap(text)), ".")
    numbers = read_numbers(column, form or NumberFormat(), is_gap)
    if numbers.misfits:
        row = numbers.misfits[0]
        raise BadData(f"column {name!r} is not of type {kind}: row {row + 1} has {column[row]!s}")
    return numbers.values


def _plain(value: object) -> str:
    if isinstance(value, float):
        if not np.isfinite(value):
            return ""
        return str(int(value)) if value.is_integer() else str(value)
    return "" if value is None else str(value)


def _truth_of(text: str) -> bool | None:
    """Return the value of the words that are read as booleans without being asked."""
    return {TRUE: True, FALSE: False}.get(text.strip().lower())


def _is_boolean(text: str) -> bool:
    return _truth_of(text) is not None


def _is_absent_boolean(text: str, are_gaps_stated: bool) -> bool:
    # Unknown and none may be a third answer. Stated words are empty texts by now.
    return is_gap(text, "booleans", () if are_gaps_stated else None)


def _as_booleans(
    column: Array, are_gaps_stated: bool, read: Callable[[str], bool | None] = _truth_of
) -> Array | None:
    truths: list[bool | None] = []
    for text in column.tolist():
        is_absent = _is_absent_boolean(text, are_gaps_stated)
        if (truth := None if is_absent else read(text)) is None and not is_absent:
            return None
        truths.append(truth)
    if None in truths:
        return np.asarray([np.nan if truth is None else float(truth) for truth in truths])
    return np.asarray(truths, bool)


_CONVERSIONS: tuple[tuple[ColumnType, Callable[[str], bool], Callable[[Array, bool], Array | None]], ...] = (
    ("boolean", _is_boolean, _as_booleans),
)
