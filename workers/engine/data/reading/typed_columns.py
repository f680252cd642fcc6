"""Decides once how a whole column is read: its type, the format of its numbers and its missing values."""

from collections.abc import Mapping

import numpy as np

from jobs.spec.data.columns import WEIGHTS, ColumnRequest, ColumnType
from jobs.spec.data.gap_words import is_gap
from jobs.spec.data.number_format import DecimalSign, NumberFormat, numbers_among
from jobs.spec.data.offers import Offer
from workers.engine.arrays import Array
from workers.engine.data.dates.numbers import recognize_digits
from workers.engine.data.dates.stated import as_arrow, distinct_of
from workers.engine.data.encode import missing
from workers.engine.data.reading.column_texts import ColumnTexts
from workers.engine.data.reading.column_types import (
    TypedColumn,
    convert,
    recognize,
    recognize_words,
    with_dates,
)
from workers.engine.data.reading.gap_evidence import decide_gaps, decide_gaps_of_booleans
from workers.engine.data.reading.number_columns import NumberTexts, offer_other_reading
from workers.engine.data.reading.unread_forms import name_form
from workers.engine.data.table import Table
from workers.engine.errors import BadData
from workers.features.date_texts import without_dates


def read_column(
    name: str, columns: Mapping[str, Array], request: ColumnRequest, table: Table, *, is_target: bool
) -> TypedColumn:
    """Return a column with the type that a person chose or that all of its values have.

    Args:
        name: the column's name.
        columns: the table's columns.
        request: the rules that a person has stated for it.
        table: as it was read.
        is_target: whether it is the target.

    Raises:
        BadData: its values do not have the requested type.
    """
    texts = ColumnTexts.of(columns, name)
    if texts is None:
        typed = _read_values(name, columns[name], request, table, is_target=is_target)
        counts = table.gap_words.get(name, {})
    else:
        typed = _read_texts(name, texts, request, table, is_target=is_target)
        counts = _gap_counts(texts, typed, request.gap_words)
    return typed._replace(gap_counts=tuple(counts.items()))


def _gap_counts(texts: ColumnTexts, typed: TypedColumn, stated: tuple[str, ...] | None) -> Mapping[str, int]:
    """Return the words where numbers, dates or truth values are missing, with the number of their rows."""
    if (
        typed.values is None
        or typed.type in ("category", "text")
        or not (gaps := missing(typed.values)).any()
    ):
        return {}
    if texts.codes is None:
        # Few rows are gaps, and all of a column's texts would take long.
        texts = ColumnTexts(texts.values[gaps])
    return texts.gap_words() if stated is None else texts.count_words(stated)


def _read_texts(
    name: str, texts: ColumnTexts, request: ColumnRequest, table: Table, *, is_target: bool
) -> TypedColumn:
    """Return a text column; see `read_column`."""
    sign: DecimalSign = table.dialect.decimal if table.dialect is not None else "."
    original = texts
    if request.gap_words is not None:
        texts = texts.without(request.gap_words)
    has_groups = name in table.groups_by_points
    decimal: DecimalSign = "," if has_groups else sign
    numbers = NumberTexts(name, texts, request, decimal, is_target=is_target, is_other_offered=has_groups)
    kind = _stated_type(request)
    if kind in ("number", "integer"):
        return numbers.requested(kind)
    typed = _of_type(name, texts, kind, numbers, request.date_format)
    # Numbers to predict are no dates, and a class that is no date is a class, and no missing target.
    if kind is None and is_target and typed.type == "date" and typed.dates and typed.dates.misfits:
        typed = typed._replace(values=None, type="category", number_format=None, dates=None)
    elif kind is None and typed.type == "number" and not is_target:
        typed = with_dates(typed, name)
    if request.role == "weight" and typed.type not in WEIGHTS:
        # The message of the conversion names the first value that is no number.
        return convert(texts.spread(texts.values), "number", name)
    if typed.type == "date" and typed.values is not None and request.gap_words:
        formats = typed.dates.format if typed.dates is not None else None
        typed = typed._replace(values=without_dates(typed.values, request.gap_words, formats))
    if typed.type == "boolean" and request.gap_words is None:
        gaps = decide_gaps_of_booleans(name, texts, is_target=is_target)
        return typed._replace(gap_words=gaps.words, offers=(*typed.offers, *gaps.offers))
    if typed.type not in ("category", "text"):
        return typed
    if request.gap_words is None:
        # Formats whose columns have types also have missing values, so no word needs to be one.
        may_be_gaps = table.dialect is not None
        gaps = decide_gaps(name, texts, may_be_gaps=may_be_gaps, is_target=is_target)
        texts = gaps.texts
        typed = typed._replace(gap_words=gaps.words, offers=(*typed.offers, *gaps.offers))
        if kind is None and gaps.words and not texts.first():
            return typed._replace(values=np.full(texts.rows, np.nan), type="number")
    is_same = texts.values is original.values
    return typed._replace(values=None if is_same else texts.spread(texts.values))


def _stated_type(request: ColumnRequest) -> ColumnType | None:
    """Return the type that a person has chosen, also by a format."""
    if request.date_format is not None:
        return "date"
    return request.type or ("number" if request.number_format is not None else None)


def _of_type(
    name: str,
    texts: ColumnTexts,
    kind: ColumnType | None,
    numbers: NumberTexts,
    date_format: str | None,
) -> TypedColumn:
    """Return a column with a type that was chosen, or that of its values if `kind` is None."""
    if kind not in (None, "category", "text"):
        are_stated = numbers.gap_words is not None
        typed = convert(texts.spread(texts.values), kind, name, date_format, are_gaps_stated=are_stated)
        return typed._replace(gap_words=numbers.gap_words)
    tried = numbers.proposed()
    if kind is None:
        return _proposed(name, texts, tried)
    typed = TypedColumn(None, kind, gap_words=numbers.gap_words)
    # The form of a version states every type again, also one that no person chose.
    return typed if tried.values is not None else typed._replace(findings=tried.findings, offers=tried.offers)


def _proposed(name: str, texts: ColumnTexts, numbers: TypedColumn) -> TypedColumn:
    """Return a column with the type of its values.

    Args:
        name: its name.
        texts: its texts.
        numbers: the column as numbers, or without values if it has other texts.
    """
    if numbers.values is not None:
        return numbers
    words = texts.words
    are_stated = numbers.gap_words is not None
    if words is None:
        typed = recognize(texts.values, are_gaps_stated=are_stated)
    else:
        typed = recognize_words(words, are_gaps_stated=are_stated)
    findings = typed.findings if typed.type == "date" else (*typed.findings, *numbers.findings)
    is_word = typed.type in ("category", "text")
    if typed.type == "category" and typed.dates is None and _have_digits(texts):
        codes = texts.codes
        distinct = distinct_of(texts.values) if codes is None else (as_arrow(texts.values), codes)
        typed = typed._replace(dates=recognize_digits(*distinct, name))
    if is_word and (form := name_form(texts.first(lambda text: not is_gap(text)))) is not None:
        # In place of the sentence that 20-Jan and 2h have different units.
        findings = (*typed.findings, f"Column {name!r}: {form}")
    return typed._replace(
        gap_words=numbers.gap_words,
        findings=findings,
        offers=typed.offers if typed.type == "date" else (*typed.offers, *numbers.offers),
    )


def _have_digits(texts: ColumnTexts) -> bool:
    """Return whether the first values are digits as in 080122, which are no number because of their zeros."""
    head = texts.first(lambda text: not is_gap(text))
    return bool(head) and all(text.isdecimal() and len(text) in (6, 8, 19) for text in head)


def _read_values(
    name: str, column: Array, request: ColumnRequest, table: Table, *, is_target: bool
) -> TypedColumn:
    """Return a column that has no texts."""
    if request.number_format is not None:
        raise BadData(f"column {name!r} has no texts, so it cannot have a number_format")
    is_number = column.dtype.kind in "iuf"
    form = _format_of_reader(table.dialect.decimal if table.dialect else ".") if is_number else None
    values = _without_numbers(column, request.gap_words or (), form or NumberFormat())
    if values.dtype.kind == "M":
        values = without_dates(values, request.gap_words, None)
    stated = _stated_type(request)
    # Numbers to predict are no dates.
    typed = recognize(values, None if is_target or stated is not None else name)
    kind = stated or typed.type
    if request.role == "weight" and kind not in WEIGHTS:
        kind = "number"
    if stated is not None or kind != typed.type:
        typed = convert(values, kind, name, request.date_format)
    values = values if typed.values is None else typed.values
    offers: tuple[Offer, ...] = ()
    # 1.234 may be 1,234.
    if form == NumberFormat() and kind == "number" and name in table.three_decimals:
        offers = (_offer_thousands(name, values, form),)
    return typed._replace(
        values=None if values is column else values,
        # Also of words that were numbers in the file: in a request, 1.50 is the word 1.5.
        number_format=form if kind != "date" else None,
        gap_words=request.gap_words,
        offers=(*typed.offers, *offers),
    )


def _format_of_reader(decimal: DecimalSign) -> NumberFormat:
    """Return how texts are written that the reader of a file converts at once."""
    return NumberFormat(decimal=decimal, thousands="." if decimal == "," else "")


def _without_numbers(column: Array, words: tuple[str, ...], form: NumberFormat) -> Array:
    """Return numbers with NaN in place of some, such as -999."""
    numbers = numbers_among(words, form)
    if not numbers or column.dtype.kind not in "iuf":
        return column
    are_gaps = np.isin(column, numbers)
    return np.where(are_gaps, np.nan, column) if are_gaps.any() else column


def _offer_thousands(name: str, column: Array, form: NumberFormat) -> Offer:
    present = column[np.isfinite(column)]
    # 10.000 has three decimals too.
    marked = present[present != np.round(present)]
    first = marked[0] if len(marked) else present[0]
    other = NumberFormat(decimal=",", thousands=".")
    return offer_other_reading(name, f"{first:.3f}", form, other)
