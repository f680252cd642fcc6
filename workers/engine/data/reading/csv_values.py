"""Converts a CSV column's texts to its values: numbers if all are, else texts."""

import contextlib
from typing import Any

import numpy as np

from jobs.spec.data.dialect import Dialect
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.gap_words import PROGRAM_WORDS
from workers.engine.arrays import Array
from workers.engine.data.texts import check_lengths, text_array
from workers.engine.errors import BadData

MISSING = ("", *PROGRAM_WORDS)
"""Fields that mean a missing number. Among texts they stay, since they may be categories."""
WHOLE = r"^[+-]?[0-9]+$"
LEADING_ZERO = r"^[+-]?0[0-9]"
DECIMAL_COMMA = r"^[+-]?([1-9][0-9]{0,2}(\.[0-9]{3})+|[0-9]+)(,[0-9]+)?([eE][+-]?[0-9]+)?$"
MAYBE_THOUSANDS = r"^[+-]?([1-9][0-9]{0,2}[.,][0-9]{3}|[0-9]+)$"
"""Numbers whose only mark may divide thousands or precede decimals."""
NO_GROUP = r"[.,]([0-9]{0,2}$|[0-9]{4})|[^0-9.,+-]"
FIRST = 100


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

    Whole numbers with a leading zero, such as postal codes, stay texts.

    Args:
        name: the column's name.
        chunked: its fields.
        dialect: how they are written.
        limits: the longest text.
        stays_text: whether numbers stay texts too, for a rule that a person has stated.
    """
    if not stays_text and (numbers := _numbers_of(name, cleaned(chunked), dialect)) is not None:
        return numbers
    column = text_array(trimmed(chunked).to_pylist())
    check_lengths(name, column, limits.text_characters)
    return column


def _numbers_of(name: str, texts: Any, dialect: Dialect) -> Array | None:
    """Return fields, null for missing ones, as numbers; None if they need a rule for their texts."""
    import pyarrow.compute as pc
    from pyarrow import ArrowInvalid, float64, int64

    if dialect.decimal == "," and has_one_group(texts):
        return None
    if dialect.decimal == "," and not any_match(texts, LEADING_ZERO):
        if all_match(texts, DECIMAL_COMMA):
            texts = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
        elif any_match(texts, r"\."):
            # Its points precede decimals, unlike those of the other columns.
            return None
    if texts.null_count < len(texts) and not any_match(texts, LEADING_ZERO):
        try:
            if texts.null_count == 0:
                with contextlib.suppress(ArrowInvalid):
                    return np.asarray(pc.cast(texts, int64()).to_numpy())
                if all_match(texts, WHOLE):
                    # Arrow does not read the sign of +7.
                    with contextlib.suppress(ArrowInvalid):
                        unsigned = pc.replace_substring_regex(texts, r"^\+", "")
                        return np.asarray(pc.cast(unsigned, int64()).to_numpy())
                    raise BadData(
                        f"column {name!r} has whole numbers above {np.iinfo(np.int64).max}, the largest "
                        "integer of 64 bits with a sign; write it with a decimal point, or leave it out"
                    )
            return np.asarray(pc.cast(texts, float64()).to_numpy(zero_copy_only=False))
        except ArrowInvalid:
            pass
    return None


def has_one_group(fields: Any) -> bool:
    """Return whether all fields that are numbers have one mark with three digits behind it, or no mark."""
    # Nearly every column fails at its first values, so the whole of it is seldom tried.
    if any_match(cleaned(fields[:FIRST]), NO_GROUP):
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
