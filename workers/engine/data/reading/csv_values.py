"""Converts a CSV column's texts to its values: numbers if all are, else texts."""

import contextlib
from typing import Any

import numpy as np

from jobs.spec.data.dialect import Dialect
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.gap_words import PROGRAM_WORDS
from workers.engine.arrays import Array
from workers.engine.data.reading.exact_numbers import are_exact
from workers.engine.data.texts import check_lengths, text_array

MISSING = ("", *PROGRAM_WORDS)
"""Fields that mean a missing number. Among texts they stay, since they may be categories."""
WHOLE = r"^[+-]?[0-9]+$"
LEADING_ZERO = r"^[+-]?0[0-9]"
DECIMAL_COMMA = r"^[+-]?([1-9][0-9]{0,2}(\.[0-9]{3})+|[0-9]+)(,[0-9]+)?([eE][+-]?[0-9]+)?$"
MAYBE_THOUSANDS = r"^[+-]?([1-9][0-9]{0,2}[.,][0-9]{3}|[0-9]+)$"
"""Numbers whose only mark may divide thousands or precede decimals."""
NO_GROUP = r"[.,]([0-9]{0,2}$|[0-9]{4})|[^0-9.,+-]"
FIRST_ROWS = 100


def trimmed(texts: Any) -> Any:
    """Return fields, an Arrow array, without spaces around them, and empty texts for missing ones."""
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(texts).fill_null("")


def cleaned(texts: Any) -> Any:
    """Return fields, an Arrow array, without spaces around them, and null for missing numbers."""
    import pyarrow.compute as pc
    from pyarrow import array, scalar, string

    texts = trimmed(texts)
    return pc.if_else(pc.is_in(texts, value_set=array(MISSING)), scalar(None, string()), texts)


def column_of(
    name: str, chunked: Any, dialect: Dialect, limits: FileLimits, *, stays_text: bool = False
) -> Array:
    """Return a text column as numbers if all values are, else as texts with "" for empty ones.

    Whole numbers with a leading zero, such as postal codes, stay texts, and so do those that 64 bits do not
    hold exactly.

    Args:
        name: the column's name.
        chunked: its fields.
        dialect: how they are written.
        limits: the longest text.
        stays_text: whether numbers stay texts too, for a rule that a person has stated.
    """
    if not stays_text and (numbers := _written_numbers_of(cleaned(chunked), dialect)) is not None:
        return numbers
    column = text_array(trimmed(chunked).to_pylist())
    check_lengths(name, column, limits.text_characters)
    return column


def _written_numbers_of(texts: Any, dialect: Dialect) -> Array | None:
    """Return fields, null for missing ones, as numbers; None if they need a rule for their texts."""
    import pyarrow.compute as pc

    if dialect.decimal == "," and has_one_group(texts):
        return None
    if texts.null_count == len(texts) or any_match(texts, LEADING_ZERO):
        return None
    if dialect.decimal == ",":
        if all_match(texts, DECIMAL_COMMA):
            texts = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
        elif any_match(texts, r"\."):
            # Its points precede decimals, unlike those of the other columns.
            return None
    return _numbers_of(texts)


def _numbers_of(texts: Any) -> Array | None:
    """Return texts, an Arrow array, as int64 or float64; None if one is no number or not exactly one."""
    import pyarrow.compute as pc
    from pyarrow import ArrowInvalid, float64

    # Nearly every other column fails at its first values. Arrow reads 0x1F as a whole number too.
    head = pc.match_substring_regex(texts[:FIRST_ROWS], WHOLE)
    if pc.all(head, min_count=0).as_py() and all_match(texts, WHOLE):
        return _whole_numbers_of(texts)
    try:
        return np.asarray(pc.cast(texts, float64()).to_numpy(zero_copy_only=False))
    except ArrowInvalid:
        return None


def _whole_numbers_of(texts: Any) -> Array | None:
    """Return whole numbers as int64, with gaps as float64; None if these would be other numbers."""
    import pyarrow.compute as pc
    from pyarrow import ArrowInvalid, float64, int64

    # Arrow does not read the sign of +7.
    unsigned = pc.replace_substring_regex(texts, r"^\+", "")
    if texts.null_count == 0:
        with contextlib.suppress(ArrowInvalid):
            return np.asarray(pc.cast(unsigned, int64()).to_numpy())
    if not are_exact(unsigned):
        return None
    return np.asarray(pc.cast(unsigned, float64()).to_numpy(zero_copy_only=False))


def has_one_group(fields: Any) -> bool:
    """Return whether all fields that are numbers have one mark with three digits behind it, or no mark."""
    # Nearly every column fails at its first values, so the whole of it is seldom tried.
    if any_match(cleaned(fields[:FIRST_ROWS]), NO_GROUP):
        return False
    texts = cleaned(fields)
    return any_match(texts, r"[.,]") and all_match(texts, MAYBE_THOUSANDS)


def gap_counts(fields: Any) -> dict[str, int]:
    """Return the words for missing numbers among fields, with the number of their rows."""
    import pyarrow.compute as pc
    from pyarrow import array

    texts = trimmed(fields)
    words = texts.filter(pc.is_in(texts, value_set=array(PROGRAM_WORDS)))
    return {each["values"]: each["counts"] for each in pc.value_counts(words).to_pylist()}


def all_match(texts: Any, pattern: str) -> bool:
    """Return whether all texts that are not null match a pattern, and there are some."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=1).as_py())


def any_match(texts: Any, pattern: str) -> bool:
    """Return whether a text matches a pattern."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(texts, pattern), min_count=0).as_py())
