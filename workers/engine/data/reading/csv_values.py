"""Converts a CSV column's texts to its values: numbers if all are, else texts."""

import contextlib
from typing import Any

import numpy as np

from jobs.spec.data.dialect import Dialect
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.gap_words import GAP_WORDS
from workers.engine.arrays import Array
from workers.engine.data.reading.exact_numbers import are_exact
from workers.engine.data.texts import check_lengths, text_array

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "None", "<NA>")
"""Fields that mean a missing value."""
WHOLE = r"^[+-]?[0-9]+$"
LEADING_ZERO = r"^[+-]?0[0-9]"
FIRST_ROWS = 100
DECIMAL_COMMA = r"^[+-]?([1-9][0-9]{0,2}(\.[0-9]{3})+|[0-9]+)(,[0-9]+)?([eE][+-]?[0-9]+)?( ?%)?$"


def cleaned(texts: Any) -> Any:
    """Return fields, an Arrow array, without spaces around them, and null for missing ones."""
    import pyarrow.compute as pc
    from pyarrow import array, scalar, string

    texts = pc.utf8_trim_whitespace(texts)
    # Again, since a space may surround the word.
    return pc.if_else(pc.is_in(texts, value_set=array(MISSING)), scalar(None, string()), texts)


def column_of(name: str, chunked: Any, dialect: Dialect, limits: FileLimits) -> Array:
    """Return a text column as numbers if all values are, else as texts with "" for missing ones.

    Whole numbers with a leading zero, such as postal codes, stay texts, and so do those that 64 bits do not
    hold exactly.
    """
    import pyarrow.compute as pc

    texts = written = cleaned(chunked)
    if dialect.decimal == "," and not any_match(texts, LEADING_ZERO):
        numbers = without_gap_words(texts)
        if all_match(numbers, DECIMAL_COMMA):
            texts = pc.replace_substring(pc.replace_substring(numbers, ".", ""), ",", ".")
    if texts.null_count < len(texts) and not any_match(texts, LEADING_ZERO):
        if (array := _numbers_of(texts)) is not None:
            return array
        if texts is not written and all_match(texts, WHOLE):
            # With the marks of thousands.
            texts = written
    column = text_array("" if text is None else text for text in texts.to_pylist())
    check_lengths(name, column, limits.text_characters)
    return column


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


def without_gap_words(texts: Any) -> Any:
    """Return texts, an Arrow array, with null for words such as "k.A." and "-"."""
    import pyarrow.compute as pc
    from pyarrow import array, scalar, string

    words = pc.is_in(pc.utf8_lower(texts), value_set=array(sorted(GAP_WORDS)))
    return pc.if_else(words, scalar(None, string()), texts)


def all_match(texts: Any, pattern: str) -> bool:
    """Return whether all texts that are not null match a pattern, and there are some."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=1).as_py())


def any_match(texts: Any, pattern: str) -> bool:
    """Return whether a text matches a pattern."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(texts, pattern), min_count=0).as_py())
