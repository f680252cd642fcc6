"""Describes the columns of a data set: statistics, a preview, duplicates and findings."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jobs.contracts.data import Task
from jobs.contracts.profile import Column
from workers.engine.arrays import Array
from workers.engine.data.encode import missing
from workers.engine.data.table import NUMBERS, Table
from workers.engine.data.texts import is_text

BINS = 20
MAX_SQUARED = 1e150
PREVIEW_ROWS = 50
PREVIEW_VALUES = 150_000
"""Maximum number of values in a preview, those inside arrays included."""
PREVIEW_CHARACTERS = 200
"""Maximum number of characters of a text in a preview."""
IMBALANCE = 10
"""Ratio of the largest to the smallest class from which a message is shown."""


def describe_column(name: str, column: Array) -> Column:
    """Return the statistics of one column; for arrays, over all values."""
    basic = Column(
        name=name,
        dtype="text" if is_text(column) else str(column.dtype),
        shape=column.shape[1:],
        missing=int(missing(column).sum()),
        distinct=len(np.unique(column)) if column.ndim == 1 else None,
    )
    if column.dtype.kind not in NUMBERS:
        return basic
    values = column[~missing(column)].astype(np.float64).ravel()
    if not len(values):
        return basic
    low, high = float(values.min()), float(values.max())
    largest = max(-low, high)
    # The sum or the square of a larger number may be infinite.
    unit = largest if largest > MAX_SQUARED else 1.0
    scaled, ends = values / unit, (low / unit, high / unit)
    # A range below the resolution of float64 cannot be divided into bins.
    has_range = ends[1] - ends[0] > abs(ends[1]) * 1e-12
    counts = np.histogram(scaled, bins=BINS, range=ends)[0] if has_range else [len(values)]
    return basic.model_copy(
        update={
            "min": low,
            "max": high,
            "mean": float(scaled.mean()) * unit,
            "std": float(scaled.std()) * unit,
            "histogram": tuple(int(count) for count in counts),
        }
    )


def preview(table: Table) -> tuple[dict[str, Any], ...]:
    """Return the first rows as JSON values: None for missing numbers, nested lists for arrays.

    Rows with many values are fewer; there is none if one row alone has too many.
    """
    row_values = sum(math.prod(column.shape[1:]) for column in table.columns.values())
    count = min(table.rows, PREVIEW_ROWS, PREVIEW_VALUES // max(row_values, 1))
    return tuple({name: _json(column[i]) for name, column in table.columns.items()} for i in range(count))


def _json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, str):
        return value if len(value) <= PREVIEW_CHARACTERS else f"{value[:PREVIEW_CHARACTERS]}…"
    plain = value.item()
    return None if isinstance(plain, float) and not np.isfinite(plain) else plain


def count_duplicates(x: Array, y: Array) -> int:
    """Return the number of rows that have the same features and target as an earlier row."""
    rows = len(x)
    # Each row becomes one block of bytes, which is compared faster than its columns one by one.
    both = np.concatenate(
        [
            np.ascontiguousarray(x).reshape(rows, -1).view(np.uint8).reshape(rows, -1),
            np.ascontiguousarray(y).reshape(rows, -1).view(np.uint8).reshape(rows, -1),
        ],
        axis=1,
    )
    keys = np.ascontiguousarray(both).view(np.dtype((np.void, both.shape[1])))
    return rows - len(np.unique(keys))


def count_equal_rows(columns: Sequence[Array]) -> int:
    """Return the number of rows that equal an earlier row in all of these columns, (rows,) each."""
    codes = [np.unique(column, return_inverse=True)[1].astype(np.int32) for column in columns]
    return count_duplicates(np.stack(codes, axis=1), np.zeros((len(columns[0]), 0), np.int32))


def find_issues(
    table: Table,
    *,
    target: str,
    features: Sequence[str],
    class_labels: Sequence[str],
    class_counts: Sequence[int],
    duplicates: int,
) -> tuple[str, ...]:
    """Return messages about possible problems: leakage, imbalance, constant columns, duplicates.

    Args:
        table: the columns.
        target: name of the target column.
        features: names of the features.
        class_labels: names of the classes or labels.
        class_counts: number of rows of each; empty for regression.
        duplicates: number of duplicate rows.
    """
    messages = []
    target_values = table.columns[target]
    for name in features:
        column = table.columns[name]
        if column.ndim > 1:
            continue
        if len(np.unique(column)) == 1:
            messages.append(f"Column {name!r} is constant and contains no information.")
        elif _same_partition(column, target_values):
            messages.append(f"Column {name!r} determines the target exactly: it probably leaks the target.")
    if duplicates:
        share = duplicates / table.rows
        many = f"{duplicates:,} rows ({share:.1%}) repeat" if duplicates > 1 else "One row repeats"
        messages.append(f"{many} an earlier row and may be in another part of the split.")
    messages.extend(_imbalance(class_labels, class_counts))
    return tuple(messages)


def _same_partition(column: Array, target: Array) -> bool:
    """Return whether the values of `column` and `target` correspond one to one."""
    # In a few rows, and below for a target with hardly any repeated value, this happens by chance.
    if target.ndim > 1 or len(target) < 10:
        return False
    if column.dtype.kind in NUMBERS and target.dtype.kind in NUMBERS and np.array_equal(column, target):
        return True
    distinct = len(np.unique(target))
    if len(np.unique(column)) != distinct or distinct > len(target) // 2:
        return False
    # As many distinct pairs as distinct targets: each target occurs with one value of the column only.
    codes = np.unique(column, return_inverse=True)[1] * distinct + np.unique(target, return_inverse=True)[1]
    return len(np.unique(codes)) == distinct


def class_counts(y: Array, task: Task, outputs: int) -> tuple[int, ...]:
    """Return the number of rows of each class or label; empty for regression."""
    if task in ("binary", "multiclass"):
        return tuple(int(n) for n in np.bincount(y, minlength=outputs))
    if task == "multilabel":
        return tuple(int(n) for n in y.sum(axis=0))
    return ()


def _imbalance(labels: Sequence[str], counts: Sequence[int]) -> list[str]:
    if not counts:
        return []
    smallest, largest = int(np.argmin(counts)), int(np.argmax(counts))
    messages = []
    if counts[largest] >= IMBALANCE * max(counts[smallest], 1):
        messages.append(
            f"The classes are imbalanced: {labels[largest]!r} has {counts[largest]} rows, "
            f"{labels[smallest]!r} has {counts[smallest]}; consider class weights."
        )
    if counts[smallest] < 3:
        messages.append(
            f"Class {labels[smallest]!r} has {counts[smallest]} row(s), too few for training, "
            "validation and test."
        )
    return messages
