"""Estimates each column's information about the target: mutual information between binned values."""

import math

import numpy as np

from jobs.messages.overview import Information
from jobs.spec.data.columns import ColumnType
from workers.engine.arrays import Array
from workers.engine.data.encode import missing

BINS = 16
"""Numbers and dates are divided into at most this many bins of about equally many rows."""
ROWS_A_CELL = 5
"""Of fewer rows for each pair of bins, columns that are independent would seem to have information."""


def information(name: str, column: Array, target: Array) -> Information:
    """Return a column's mutual information with the target.

    Args:
        name: the column's name.
        column: codes from 0, as `binned` returns them, (rows,).
        target: codes from 0, (rows,).
    """
    bits = mutual_information(column, target)
    most = entropy(np.bincount(target))
    share = min(bits / most, 1.0) if most > 0 else None
    return Information(column=name, bits=round(bits, 4), share=None if share is None else round(share, 4))


def bins_for(rows: int) -> int:
    """Return the bin count for a sample."""
    return min(max(math.isqrt(rows // ROWS_A_CELL), 2), BINS)


def binned(column: Array, kind: ColumnType | None, bins: int = BINS) -> Array | None:
    """Return codes from 0 for a column's values, (rows,); None for texts, which differ in each row.

    A missing value has its own code. The least frequent categories share one.
    """
    absent = missing(column)
    codes = np.zeros(len(column), np.int64)
    present = column[~absent]
    if kind == "text":
        return None
    if kind == "category" or present.dtype.kind in "TU":
        codes[~absent] = 1 + frequent_codes(present, bins)
    elif len(present):
        # Dates become their microseconds.
        codes[~absent] = 1 + _bins(present.astype(np.int64) if present.dtype.kind == "M" else present, bins)
    return codes


def frequent_codes(values: Array, bins: int = BINS) -> Array:
    """Return each value's rank by its frequency, (rows,), from 0; those after the first share one."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.asarray(np.minimum(rank, bins - 1)[inverse])


def _bins(values: Array, bins: int) -> Array:
    distinct = np.unique(values)
    if len(distinct) <= bins:
        return np.searchsorted(distinct, values)
    ordered = np.sort(values)
    # Values of the data, not means of two of them: whole numbers above 2^53 stay exact.
    edges = np.unique(ordered[(np.arange(1, bins) * len(ordered)) // bins])
    return np.searchsorted(edges, values, side="right")


def mutual_information(x: Array, y: Array) -> float:
    """Return the mutual information between two code arrays in bits, without its mean by chance.

    Independent columns have about (cells − rows − columns + 1) / 2n nats (Miller and Madow), which is
    subtracted.
    """
    width = int(y.max()) + 1
    joint = np.bincount(x * width + y, minlength=(int(x.max()) + 1) * width).reshape(-1, width)
    used = joint[joint.any(axis=1)][:, joint.any(axis=0)]
    by_chance = (used.shape[0] - 1) * (used.shape[1] - 1) / (2 * len(x) * np.log(2))
    bits = entropy(used.sum(axis=1)) + entropy(used.sum(axis=0)) - entropy(used.ravel())
    return max(float(bits - by_chance), 0.0)


def entropy(counts: Array) -> float:
    """Return a distribution's entropy in bits."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
