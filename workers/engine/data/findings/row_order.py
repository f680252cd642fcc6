"""Finds features that follow the order of rows which are sorted by class: they seem to predict it."""

from collections.abc import Iterator

import numpy as np

from jobs.spec.data.columns import ColumnRequest, ColumnRole
from jobs.spec.data.offers import Offer
from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.data.encode import missing
from workers.engine.data.schema import Schema

MIN_ROWS = 20
"""In fewer rows, classes may be sorted by chance."""
MAX_CHANGES = 0.05
"""Changes of the class between neighbouring rows, as a share of those of rows in random order."""
MIN_BLOCK = 5
"""Rows of one class, one below the other, in which a feature is compared with the order."""
MIN_COMPARED = 0.8
"""Share of the rows that are in such blocks."""
MIN_CORRELATION = 0.9
"""Rank correlation of a feature with the row number, also inside of each block."""
MAX_BLOCKS = 1_000
CHECKED_ROWS = 2_000
"""The correlation in the first rows of the first block is computed first: nearly every column fails there."""


def offers_of_row_order(schema: Schema, y: Array, task: Task) -> tuple[Offer, ...]:
    """Return an offer to leave out each feature that follows rows which are sorted by class.

    Inside of a class, other features have no relation to the row number: rows that are sorted by class have
    features that differ between the classes, but do not rise from row to row.

    Args:
        schema: the table.
        y: the encoded target.
        task: its task.
    """
    if task not in ("binary", "multiclass") or len(y) < MIN_ROWS:
        return ()
    if any(column.role in ("time", "split") for column in schema.columns.values()):
        return ()
    blocks = _blocks(y)
    if not blocks:
        return ()
    # A series over time has long stretches of one class, too.
    is_sorted = len(blocks) <= len(np.unique(y))
    kinds = ("number", "integer", "date") if is_sorted else ("number", "integer")
    return tuple(
        _offer(name, schema, len(blocks))
        for name in schema.features
        if schema.columns[name].type in kinds and _follows(schema.table.columns[name], blocks)
    )


def _blocks(y: Array) -> list[slice]:
    """Return the rows of one class that follow each other; none if the rows are not sorted by class."""
    starts = np.flatnonzero(np.diff(y, prepend=y[0] - 1))
    shares = np.bincount(y) / len(y)
    changes_by_chance = (len(y) - 1) * (1 - float((shares**2).sum()))
    changes = len(starts) - 1
    is_sorted = changes == np.count_nonzero(shares) - 1
    if len(starts) > MAX_BLOCKS or not (is_sorted or changes <= MAX_CHANGES * changes_by_chance):
        return []
    ends = [*starts[1:].tolist(), len(y)]
    blocks = [slice(start, end) for start, end in zip(starts.tolist(), ends, strict=True)]
    long = [block for block in blocks if block.stop - block.start >= MIN_BLOCK]
    is_compared = sum(block.stop - block.start for block in long) >= MIN_COMPARED * len(y)
    return long if is_compared and len(long) > 1 else []


def _follows(column: Array, blocks: list[slice]) -> bool:
    """Return whether a feature rises or falls with the row number in each block, and over all rows."""
    first = blocks[0]
    head = slice(first.start, min(first.stop, first.start + CHECKED_ROWS))
    direction = np.sign(_correlation(column[head]))
    parts: Iterator[slice] = iter([head, *blocks, slice(0, len(column))])
    return bool(direction) and all(
        direction * _correlation(column[part]) >= MIN_CORRELATION for part in parts
    )


def _correlation(values: Array) -> float:
    """Return the rank correlation of values with their places; 0 if most are equal or missing."""
    places = np.flatnonzero(~missing(values))
    if len(places) < max(MIN_BLOCK, MIN_COMPARED * len(values)):
        return 0.0
    different, ranks = np.unique(values[places], return_inverse=True)
    if 2 * len(different) < len(places):
        return 0.0
    return float(np.corrcoef(ranks, places)[0, 1])


def _offer(name: str, schema: Schema, blocks: int) -> Offer:
    role: ColumnRole = "ignore" if schema.columns[name].type == "date" else "id"
    return Offer(
        finding=f"Rows are sorted by {schema.target!r}, in {blocks} blocks of one class, and column {name!r} "
        "follows the order of the rows inside of each block: a model can find the class by the place of a "
        "row in the file, which new rows do not have. Unless it was measured, leave it out.",
        label=f"Leave {name} out",
        change=ColumnRequest(name=name, role=role),
    )
