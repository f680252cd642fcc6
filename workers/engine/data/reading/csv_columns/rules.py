"""Finds the texts that are numbers and those that are missing, for whole Arrow arrays at once."""

from typing import Any

import numpy as np

from jobs.spec.data.gap_words import PROGRAM_WORDS
from workers.engine.arrays import Array

MISSING = ("", *PROGRAM_WORDS)
"""Fields that mean a missing number. Among texts they stay, since they may be categories."""
WHOLE = r"^[+-]?[0-9]+$"
DECIMAL_COMMA = r"^[+-]?([1-9][0-9]{0,2}(\.[0-9]{3})+|[0-9]+)(,[0-9]+)?([eE][+-]?[0-9]+)?$"
MAYBE_THOUSANDS = r"^[+-]?([1-9][0-9]{0,2}[.,][0-9]{3}|[0-9]+)$"
"""Numbers whose only mark may divide thousands or precede decimals."""
HUNDRED, HUNDREDS = 100, r"^[+-]?[1-9][0-9]{2,}$"
"""Whole numbers that would have a mark if one preceded three decimals, unless it divides thousands."""
NO_GROUP = r"[.,]([0-9]{0,2}$|[0-9]{4})|[^0-9.,+-]"
FIRST_ROWS = 100
HEAD_ROWS = 1000
"""Texts that show whether texts repeat."""
ZERO = ord("0")
LARGE_BYTES = 1 << 30
"""Texts above this size have positions of 64 bits."""


def joined(fields: Any) -> Any:
    """Return a column's fields, a chunked Arrow array, as one array."""
    import pyarrow as pa

    if isinstance(fields, pa.ChunkedArray):
        if fields.nbytes > LARGE_BYTES:
            fields = fields.cast(pa.large_string())
        fields = fields.combine_chunks()
        # Of several chunks above 2 GiB, Arrow makes no single one.
        return fields if isinstance(fields, pa.Array) else pa.concat_arrays(fields.chunks)
    return fields


def trimmed(fields: Any) -> Any:
    """Return fields without spaces around them, and empty texts for missing ones."""
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(fields).fill_null("")


def short_texts(fields: Any) -> Any:
    """Return fields as texts for a column: without spaces around them, each different one trimmed once."""
    import pyarrow as pa

    head = fields[:HEAD_ROWS]
    if len(head.unique()) * 2 >= len(head):
        return trimmed(fields).cast(pa.large_string())
    encoded = fields.dictionary_encode()
    return trimmed(encoded.dictionary).cast(pa.large_string()).take(encoded.indices).fill_null("")


def longest(texts: Any) -> int:
    """Return the number of bytes of the longest text."""
    ends = _ends(texts)
    return int(np.diff(ends).max()) if len(ends) > 1 else 0


def has_leading_zero(texts: Any) -> bool:
    """Return whether a text begins with a zero and a digit or an x, after an optional sign."""
    ends = _ends(texts)
    body = texts.buffers()[2]
    if body is None or not len(body):
        return False
    codes = np.frombuffer(body, np.uint8)
    # The first character behind the last text may not exist.
    first = codes.take(ends[:-1], mode="clip")
    # + is 43 and - is 45; ) and / also pass, with which no number begins.
    places = ends[:-1] + ((first & 0b11111001) == 41)
    texts_with_zero = np.flatnonzero(codes.take(places, mode="clip") == ZERO)
    places = places[texts_with_zero] + 1
    following = codes[places[places < ends[texts_with_zero + 1]]]
    is_digit = (following >= ZERO) & (following <= ord("9"))
    return bool((is_digit | (following == ord("x")) | (following == ord("X"))).any())


def _ends(texts: Any) -> Array:
    """Return the position at which the first text begins, and that at which each ends, (texts + 1,)."""
    import pyarrow as pa

    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = texts.buffers()[1]
    if offsets is None or not len(texts):
        return np.zeros(1, kind)
    return np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1]


def may_have_one_group(texts: Any) -> bool:
    """Return whether all texts that are not null have one mark with three digits behind it, or no mark."""
    # Nearly every column fails at its first values, so the whole of it is seldom tried.
    return not any_match(texts[:FIRST_ROWS], NO_GROUP) and all_match(texts, MAYBE_THOUSANDS)


def are_whole(texts: Any) -> bool:
    """Return whether all texts that are not null are whole numbers, and there are some."""
    import pyarrow.compute as pc

    head = pc.match_substring_regex(texts[:FIRST_ROWS], WHOLE)
    return bool(pc.all(head, min_count=0).as_py()) and all_match(texts, WHOLE)


def all_match(texts: Any, pattern: str) -> bool:
    """Return whether all texts that are not null match a pattern, and there are some."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=1).as_py())


def any_match(texts: Any, pattern: str) -> bool:
    """Return whether a text matches a pattern."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(texts, pattern), min_count=0).as_py())
