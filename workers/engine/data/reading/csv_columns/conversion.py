"""Converts a column's texts in some rows to numbers, if all are some.

Whole numbers with a leading zero, such as postal codes, stay texts, and so do those that 64 bits do not hold
exactly.
"""

from typing import Any

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.reading.csv_columns.facts import ColumnFacts, Part
from workers.engine.data.reading.csv_columns.rules import (
    DECIMAL_COMMA,
    FIRST_ROWS,
    HUNDRED,
    HUNDREDS,
    MISSING,
    all_match,
    any_match,
    are_whole,
    has_leading_zero,
    joined,
    longest,
    may_have_one_group,
    short_texts,
    trimmed,
)
from workers.engine.data.reading.exact_numbers import SURE_DIGITS, are_exact, loses_digits


def convert(fields: Any, facts: ColumnFacts) -> Part:
    """Return the values of some rows.

    Args:
        fields: the texts, an Arrow array or a chunked one, null for empty ones.
        facts: those of earlier rows, perhaps not of the last ones. Facts that cannot change are not searched
            again.
    """
    fields = joined(fields)
    if facts.is_text:
        return texts_part(fields)
    # A column with words for missing numbers has more of them.
    is_tried = not (facts.decimal_comma or facts.words)
    if is_tried and (part := _written_numbers(fields, facts)) is not None:
        return part
    return _cleaned_part(fields, facts)


def texts_part(fields: Any) -> Part:
    """Return the values of some rows of a column that has texts."""
    return Part("text", short_texts(joined(fields)), len(fields))


def _written_numbers(fields: Any, facts: ColumnFacts) -> Part | None:
    """Return the numbers of fields without blanks and words for missing ones; None for other fields."""
    if fields.null_count == len(fields):
        return None
    if facts.is_whole and (whole := _cast(fields, "int64")) is not None:
        return None if has_leading_zero(fields) else _integers(fields, fields, whole, facts)
    numbers = _cast(fields, "float64")
    if numbers is None or has_leading_zero(fields):
        return None
    values = _array_of(numbers)
    # nan and -nan are words, and have several forms. Of whole numbers, some have a plus sign.
    if int(np.isnan(values).sum()) != numbers.null_count or (facts.is_whole and are_whole(fields)):
        return None
    return _numbers(fields, fields, values, facts, is_whole=False)


def _cleaned_part(fields: Any, facts: ColumnFacts) -> Part:
    """Return the values of any fields."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = trimmed(fields)
    is_missing = pc.is_in(texts, value_set=pa.array(MISSING, texts.type))
    words = _counted(texts.filter(is_missing))
    present = pc.if_else(is_missing, pa.scalar(None, texts.type), texts)
    if present.null_count == len(present):
        part = Part("empty", texts.cast(pa.large_string()), len(fields), has_gaps=len(fields) > 0)
    else:
        part = _numbers_among(fields, present, facts) or texts_part(fields)
    part.words = words
    return part


def _counted(missing: Any) -> dict[str, int]:
    """Return the words for missing numbers, with the number of their rows."""
    import pyarrow.compute as pc

    return {each["values"]: each["counts"] for each in pc.value_counts(missing).to_pylist() if each["values"]}


def _numbers_among(fields: Any, texts: Any, facts: ColumnFacts) -> Part | None:
    """Return texts, null for missing numbers, as numbers; None if they need a rule for texts."""
    import pyarrow.compute as pc

    if has_leading_zero(texts):
        return None
    written, has_commas, is_plain = texts, True, True
    if facts.decimal_comma:
        has_commas = all_match(texts, DECIMAL_COMMA)
        is_plain = not any_match(texts, "[.,]")
        if has_commas:
            written = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
        elif not is_plain:
            # Its points precede decimals, unlike those of the other columns.
            return None
    # Arrow does not read the sign of +7 as a whole number, and 0x1F is none.
    is_whole = facts.is_whole and are_whole(written)
    unsigned = pc.replace_substring_regex(written, r"^\+", "") if is_whole else written
    if is_whole and (whole := _cast(unsigned, "int64")) is not None:
        part = _integers(fields, unsigned, whole, facts)
    elif (numbers := _cast(unsigned, "float64")) is not None:
        part = _numbers(fields, written, _array_of(numbers), facts, is_whole=is_whole)
    else:
        return None
    part.has_decimal_commas, part.is_plain = has_commas, is_plain
    part.has_gaps = texts.null_count > 0
    if facts.decimal_comma:
        part.has_mark = not is_plain
        part.may_be_groups = facts.may_be_groups and may_have_one_group(texts)
    return part


def _integers(fields: Any, texts: Any, whole: Any, facts: ColumnFacts) -> Part:
    """Return whole numbers, an Arrow array of int64 with null for gaps, of texts."""
    values = np.asarray(whole.drop_null().to_numpy() if whole.null_count else whole.to_numpy())
    part = Part(
        "integer",
        values,
        len(whole),
        has_gaps=whole.null_count > 0,
        is_whole=True,
        fits=True,
        is_inexact=loses_digits(values),
        may_be_groups=True,
        has_hundreds=bool(len(values)) and bool(np.abs(values).max() >= HUNDRED),
        long=_long(fields, facts),
    )
    part.has_negative_zero = not values.all() and _has_negative_zero(texts)
    if part.has_gaps:
        part.kind, part.values = "number", _array_of(_cast(texts, "float64"))
    return part


def _has_negative_zero(texts: Any) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.equal(texts, "-0")).as_py())


def _numbers(fields: Any, texts: Any, values: Array, facts: ColumnFacts, *, is_whole: bool) -> Part:
    """Return numbers of texts; whole ones have more than 64 bits."""
    may_be_groups = facts.may_be_groups and may_have_one_group(texts)
    return Part(
        "number",
        values,
        len(values),
        has_gaps=texts.null_count > 0,
        is_whole=is_whole,
        is_inexact=is_whole and not facts.is_inexact and not are_exact(texts),
        has_mark=may_be_groups and any_match(texts, "[.,]"),
        may_be_groups=may_be_groups,
        has_hundreds=may_be_groups and any_match(texts, HUNDREDS),
        long=_long(fields, facts),
    )


def _long(fields: Any, facts: ColumnFacts) -> Any:
    """Return the texts that may have more digits than a float64; None if there are none."""
    import pyarrow.compute as pc

    # A sign, a point and a first zero are no digits that count.
    shortest = SURE_DIGITS + 3
    if not facts.takes_long or longest(fields) <= shortest:
        return None
    return fields.filter(pc.greater(pc.binary_length(fields), shortest))


def _cast(texts: Any, kind: str) -> Any | None:
    """Return texts as numbers; None if one is no number."""
    import pyarrow.compute as pc
    from pyarrow import ArrowInvalid

    try:
        # Arrow converts all values before it reports the first that is no number.
        pc.cast(texts[:FIRST_ROWS], kind)
        return pc.cast(texts, kind)
    except ArrowInvalid:
        return None


def _array_of(numbers: Any) -> Array:
    """Return an Arrow array of float64 with NaN for nulls."""
    return np.asarray(numbers.to_numpy(zero_copy_only=False))
