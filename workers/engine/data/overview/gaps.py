"""Finds where a table's columns have missing values."""

import math
from collections.abc import Mapping

import numpy as np

from jobs.messages.overview import BLOCKS, GAP_COLUMNS, ColumnGaps, Gaps
from workers.engine.arrays import Array
from workers.engine.data.encode import missing


def gaps(columns: Mapping[str, Array], counts: Mapping[str, int]) -> Gaps | None:
    """Return a table's missing-value map; None if no value is missing.

    Args:
        columns: by name, (rows, …) each.
        counts: how many values each lacks.
    """
    incomplete = sorted((name for name, count in counts.items() if count), key=lambda name: -counts[name])
    if not incomplete:
        return None
    rows = len(columns[incomplete[0]])
    size = math.ceil(rows / BLOCKS)
    columns_of_gaps = [
        ColumnGaps(column=name, missing=counts[name], percent=_percent(missing(columns[name]), size))
        for name in incomplete[:GAP_COLUMNS]
    ]
    return Gaps(block_rows=size, columns=tuple(columns_of_gaps), more=len(incomplete) - len(columns_of_gaps))


def _percent(absent: Array, size: int) -> tuple[int, ...]:
    """Return each block's share of missing values. A block with any has at least 1 %."""
    starts = np.arange(0, len(absent), size)
    sums = [np.count_nonzero(absent[start : start + size]) for start in starts]
    lengths = np.diff([*starts, len(absent)])
    return tuple(
        min(max(round(100 * int(count) / int(length)), 1), 99 if count < length else 100) if count else 0
        for count, length in zip(sums, lengths, strict=True)
    )
