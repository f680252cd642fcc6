"""Finds numbers that 64 bits do not hold exactly: identifiers with many digits, and long decimals.

A whole number above 2^53 may have no float64 of its own. Two identifiers would become the same number, so a
column with such values keeps its texts.
"""

import contextlib
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np

from workers.engine.arrays import Array

LARGEST_EXACT = 2**53
"""Up to it, each whole number has a float64 of its own."""
LARGEST_INTEGER = 2**63 - 1
"""The largest of the whole numbers in a column of type integer."""
SURE_DIGITS = 15
"""Two decimals with at most this many digits are never the same float64."""
MAX_DIGITS = 309
"""Of the largest float64. Python refuses to convert far longer texts."""
COMPARED = 50_000
"""Long decimals of a column that are compared. Their texts are in memory while a file is read."""
SHOWING, PART_ROWS = 100, 65_536
"""Values that show whether a column has whole numbers, and those that are compared at once after these."""
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_DIGITS = re.compile(r"[0-9]+")


class EqualDecimals(NamedTuple):
    """Two different decimals that are the same number in 64 bits."""

    first: str
    second: str


def is_exact(digits: str) -> bool:
    """Return whether a whole number, with an optional sign, is a float64."""
    if len(digits) <= SURE_DIGITS:
        return True
    return len(digits) <= MAX_DIGITS and int(digits) == float(digits)


def are_exact(texts: Any) -> bool:
    """Return whether whole numbers, an Arrow array of texts with null for gaps, all are float64."""
    import pyarrow.compute as pc

    long = texts.filter(pc.greater(pc.binary_length(texts), SURE_DIGITS))
    return all(is_exact(text) for part in _parts(long) for text in part.to_pylist())


def loses_digits(numbers: Array) -> bool:
    """Return whether a whole number, (rows,) int64 or uint64, is no float64."""
    if not len(numbers) or (numbers.max() <= LARGEST_EXACT and numbers.min() >= -LARGEST_EXACT):
        return False
    large = numbers[(numbers > LARGEST_EXACT) | (numbers < -LARGEST_EXACT)]
    return any(number != float(number) for number in large.tolist())


def were_rounded(texts: Array, numbers: Array) -> bool:
    """Return whether texts of whole numbers became float64 that are other numbers.

    Args:
        texts: as they were written, also with signs between thousands, (rows,).
        numbers: the numbers that they became, NaN for gaps, (rows,).
    """
    if numbers.dtype.kind != "f":
        return False
    large = np.flatnonzero(np.abs(numbers) >= LARGEST_EXACT)
    if not len(large):
        return False
    present = numbers[np.isfinite(numbers)]
    if (present != np.round(present)).any():
        return False
    return any(
        _loses_digits(text, number)
        for text, number in zip(texts[large].tolist(), numbers[large].tolist(), strict=True)
    )


def inexact_number(texts: Array) -> str | None:
    """Return a whole number of a column that is no float64; None if there is none, or another text.

    Args:
        texts: the column, with "" for gaps, (rows,).
    """
    example = None
    # Nearly every column fails in the first part, so the whole of it is seldom read.
    for start in (0, *range(SHOWING, len(texts), PART_ROWS)):
        part = texts[start : start + (PART_ROWS if start else SHOWING)].tolist()
        if not all(not text or _WHOLE.fullmatch(text) for text in part):
            return None
        example = example or next((text for text in part if text and not is_exact(text)), None)
    return example


def _loses_digits(text: str, number: float) -> bool:
    digits = "".join(_DIGITS.findall(text))
    if len(digits) > MAX_DIGITS or not np.isfinite(number):
        return True
    whole, read = int(digits), int(abs(number))
    # With decimals or an exponent the digits are those of a far larger or smaller number.
    return whole != read and abs(whole - read) * 1_000 < read


def equal_decimals(texts: Iterable[str]) -> EqualDecimals | None:
    """Return two different decimals that are the same float64, the first that are found; None without any."""
    seen: dict[float, str] = {}
    for text in texts:
        try:
            number = float(text)
        except ValueError:
            continue
        other = seen.setdefault(number, text)
        if other != text and np.isfinite(number) and _differ(other, text):
            return EqualDecimals(other, text)
    return None


def _differ(first: str, second: str) -> bool:
    try:
        return Decimal(first) != Decimal(second)
    except InvalidOperation:
        return False


def equal_decimals_in(texts: Any) -> EqualDecimals | None:
    """Return two different decimals of an Arrow array of texts that are the same float64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # A sign, a point and a first zero are no digits that count.
    long = texts.filter(pc.greater(pc.binary_length(texts), SURE_DIGITS + 3))
    if not len(long):
        return None
    texts = long[:COMPARED].unique()
    with contextlib.suppress(pa.ArrowInvalid):
        # Nearly every column has as many numbers as texts.
        if pc.count_distinct(pc.cast(texts, pa.float64())).as_py() == len(texts):
            return None
    return equal_decimals(texts.to_pylist())


def equal_decimals_of(texts: Array) -> EqualDecimals | None:
    """Return two different decimals of texts, (rows,), that are the same float64."""
    long = texts[np.strings.str_len(texts) > SURE_DIGITS + 3][:COMPARED]
    return equal_decimals(text.strip() for text in long.tolist()) if len(long) else None


def _parts(texts: Any) -> list[Any]:
    return list(texts.chunks) if hasattr(texts, "chunks") else [texts]
