"""Describes columns for people: statistics, preview, duplicates and findings."""

from typing import Any

import numpy as np

from jobs.contracts.profile import Column
from workers.engine.data.encode import Encoded, missing
from workers.engine.data.table import NUMBERS, Array, Table

BINS = 20
PREVIEW_ROWS = 50
IMBALANCE = 10
"""How many times larger the largest class is than the smallest before it is worth a sentence."""


def describe_column(name: str, column: Array) -> Column:
    """Return the statistics of one column (of all its values, for arrays)."""
    known = Column(
        name=name,
        dtype=str(column.dtype) if column.dtype.kind != "U" else "text",
        shape=column.shape[1:],
        missing=int(missing(column).sum()),
        distinct=len(np.unique(column)) if column.ndim == 1 else None,
    )
    if column.dtype.kind not in NUMBERS:
        return known
    values = column[~missing(column)].astype(np.float64).ravel()
    if not len(values):
        return known
    low, high = float(values.min()), float(values.max())
    # a span below what float64 resolves cannot be cut into bins
    spread = high - low > abs(high) * 1e-12
    counts = np.histogram(values, bins=BINS, range=(low, high))[0] if spread else [len(values)]
    return known.model_copy(
        update={
            "min": low,
            "max": high,
            "mean": float(values.mean()),
            "std": float(values.std()),
            "histogram": tuple(int(count) for count in counts),
        }
    )


def preview(table: Table) -> tuple[dict[str, Any], ...]:
    """Return the first rows as JSON values; missing numbers are None, arrays nested lists."""
    count = min(table.rows, PREVIEW_ROWS)
    return tuple({name: _json(column[i]) for name, column in table.columns.items()} for i in range(count))


def _json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    plain = value.item()
    return None if isinstance(plain, float) and not np.isfinite(plain) else plain


def count_duplicates(x: Array, y: Array) -> int:
    """Count rows that repeat an earlier row in features and target."""
    rows = len(x)
    both = np.concatenate(
        [
            np.ascontiguousarray(x).reshape(rows, -1).view(np.uint8).reshape(rows, -1),
            np.ascontiguousarray(y).reshape(rows, -1).view(np.uint8).reshape(rows, -1),
        ],
        axis=1,
    )
    keys = np.ascontiguousarray(both).view(np.dtype((np.void, both.shape[1])))
    return rows - len(np.unique(keys))


def find(table: Table, encoded: Encoded, duplicates: int) -> tuple[str, ...]:
    """Return sentences on what would surprise: leakage, imbalance, constants, duplicates."""
    found = list(encoded.findings)
    target = table.columns[encoded.target]
    for name in encoded.features:
        column = table.columns[name]
        if column.ndim > 1:
            continue
        if len(np.unique(column)) == 1:
            found.append(f"Column {name!r} is constant and tells a model nothing.")
        elif _same_partition(column, target):
            found.append(f"Column {name!r} determines the target exactly: it probably leaks the answer.")
    if duplicates:
        share = duplicates / table.rows
        many = f"{duplicates:,} rows ({share:.1%}) repeat" if duplicates > 1 else "One row repeats"
        found.append(f"{many} an earlier row, and may fall into another part than that.")
    found.extend(_imbalance(encoded))
    return tuple(found)


def _same_partition(column: Array, target: Array) -> bool:
    """Say whether each value of `column` stands with one value of `target` and the reverse."""
    if target.ndim > 1 or len(target) < 10:
        return False
    if column.dtype.kind in NUMBERS and target.dtype.kind in NUMBERS and np.array_equal(column, target):
        return True
    distinct = len(np.unique(target))
    if len(np.unique(column)) != distinct or distinct > len(target) // 2:
        return False
    codes = np.unique(column, return_inverse=True)[1] * distinct + np.unique(target, return_inverse=True)[1]
    return len(np.unique(codes)) == distinct


def class_counts(encoded: Encoded) -> tuple[int, ...]:
    """Return how many rows each class (or label) has."""
    if encoded.task in ("binary", "multiclass"):
        return tuple(int(n) for n in np.bincount(encoded.y, minlength=encoded.outputs))
    if encoded.task == "multilabel":
        return tuple(int(n) for n in encoded.y.sum(axis=0))
    return ()


def _imbalance(encoded: Encoded) -> list[str]:
    counts = class_counts(encoded)
    if not counts:
        return []
    smallest, largest = int(np.argmin(counts)), int(np.argmax(counts))
    labels = encoded.class_labels
    found = []
    if counts[largest] >= IMBALANCE * max(counts[smallest], 1):
        found.append(
            f"The classes are unbalanced: {labels[largest]!r} has {counts[largest]} rows, "
            f"{labels[smallest]!r} has {counts[smallest]}; consider class weights."
        )
    if counts[smallest] < 3:
        found.append(
            f"Class {labels[smallest]!r} has {counts[smallest]} row(s): too few to stand in training, "
            "validation and test."
        )
    return found
