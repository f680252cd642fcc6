"""Finds numbers that the 32-bit floats of a model do not hold: too large ones, and equal ones."""

from collections.abc import Mapping, Sequence

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.statistics import MOST_NAMED
from workers.features.values import LARGEST

EXACT = 2.0**24
"""Up to it, each whole number has a float32 of its own."""
COMPARED_ROWS = 100_000
MOST_KEPT = 0.5
"""If fewer of the different numbers remain, a sentence names the column."""


def find_lost_numbers(columns: Mapping[str, Array], names: Sequence[str]) -> list[str]:
    """Return sentences on numbers that a model does not read as they are.

    Args:
        columns: by name, (rows,) each.
        names: the columns that are an input, or a number to predict.
    """
    found = []
    for name in names:
        numbers = columns[name]
        if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
            continue
        if large := _count_too_large(numbers):
            many = "One number is" if large == 1 else f"{large:,} numbers are"
            found.append(
                f"Column {name!r}: {many} infinite or beyond the range of 32-bit floats, and "
                f"{'counts' if large == 1 else 'count'} as missing."
            )
        if (equal := _find_equal(name, numbers[:COMPARED_ROWS])) is not None:
            found.append(equal)
    more = len(found) - MOST_NAMED
    return found if more <= 0 else [*found[:MOST_NAMED], f"{more:,} more columns have such numbers."]


def _count_too_large(numbers: Array) -> int:
    """Count the numbers that a model computes to infinity or NaN."""
    return int((np.abs(numbers, dtype=np.float64) > LARGEST).sum()) if numbers.dtype.kind == "f" else 0


def _find_equal(name: str, numbers: Array) -> str | None:
    """Return a sentence if numbers differ, and most are equal as 32-bit floats.

    Times in seconds since 1970 are such numbers: a float of 32 bits holds them to two minutes.
    """
    numbers = numbers[np.abs(numbers, dtype=np.float64) <= LARGEST]
    if not len(numbers) or np.abs(numbers, dtype=np.float64).max() < EXACT:
        return None
    different, kept = len(np.unique(numbers)), len(np.unique(numbers.astype(np.float32)))
    if kept >= MOST_KEPT * different:
        return None
    return (
        f"Column {name!r}: {different:,} different numbers are only {kept:,} as the 32-bit floats of a "
        f"model. Subtract a constant from them, such as {numbers.min():.16g}, in the file; write moments as "
        "dates."
    )
