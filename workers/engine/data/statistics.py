"""Describes a data set's columns: statistics, a preview, duplicates and findings."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jobs.spec.data.profile import Column
from jobs.spec.sections.data import Task
from workers.engine.arrays import Array, can_divide
from workers.engine.data.encode import missing
from workers.engine.data.image_files.pixels import VALUES, count_values, moments
from workers.engine.data.spilled import head
from workers.engine.data.table import NUMBERS, Table
from workers.engine.data.texts import is_text

BINS = 20
PART_ROWS = 65_536
"""Rows that are converted at once, so that they stay in the processor's cache."""
LARGEST_EXACT = 2.0**53
"""Below it, each whole number has a float64 of its own."""
MAX_SQUARED = 1e150
MIN_SQUARED = 1e-150
PREVIEW_ROWS = 50
PREVIEW_VALUES = 150_000
"""Maximum number of values in a preview, those inside arrays included."""
PREVIEW_CHARACTERS = 200
"""Maximum number of characters of a text in a preview."""
MOST_NAMED = 30
"""Columns of one kind that are named in messages one by one; the message on the others has their number."""
IMBALANCE = 10
"""Ratio of the largest to the smallest class from which a message is shown."""


def describe_column(name: str, column: Array, distinct: int | None = None) -> Column:
    """Return one column's statistics; for arrays, over all values.

    Args:
        name: the column's name.
        column: its values, (rows, …).
        distinct: how many different values a text column has, if known.
    """
    if column.ndim == 1 and column.dtype.kind in NUMBERS:
        return describe_numbers(name, column, ascending(column))
    gaps = missing(column)
    basic = Column(
        name=name,
        dtype="text" if is_text(column) else str(column.dtype),
        shape=column.shape[1:],
        missing=int(np.count_nonzero(gaps)),
    )
    present = column[~gaps] if basic.missing else column
    if column.dtype.kind not in NUMBERS:
        if distinct is None and column.ndim == 1:
            distinct = _distinct(column)
        measured = _of_dates(present) if column.dtype.kind == "M" and len(present) else {}
        return basic.model_copy(update=measured | {"distinct": distinct})
    values = present.astype(np.float64, copy=False).ravel()
    return basic.model_copy(update=of_numbers(values) if len(values) else {})


class Ascending(NamedTuple):
    """A column's numbers in ascending order, from which most statistics follow.

    Attributes:
        values: those that are not NaN: float64, or whole numbers that float64 lacks.
        finite: the finite ones as float64.
        rows: the row count, with NaN rows included.
    """

    values: Array
    finite: Array
    rows: int

    @property
    def distinct(self) -> int:
        """How many different values there are, NaN included."""
        return count_distinct(self.values) + (len(self.values) < self.rows)


def ascending(column: Array) -> Ascending:
    """Return a column's numbers, (rows,), in ascending order."""
    values = np.sort(column.astype(np.float64, copy=False))
    if column.dtype.kind != "f":
        # As floats, two whole numbers above the largest exact one may be equal.
        is_exact = not len(values) or max(-values[0], values[-1]) < LARGEST_EXACT
        return Ascending(values if is_exact else np.sort(column), values, len(values))
    first = int(np.searchsorted(values, -np.inf, side="right"))
    last = int(np.searchsorted(values, np.inf))
    return Ascending(values[: np.searchsorted(values, np.nan)], values[first:last], len(values))


def describe_numbers(name: str, column: Array, ordered: Ascending) -> Column:
    """Return a number column's statistics, (rows,)."""
    finite = ordered.finite
    values = column.astype(np.float64, copy=False)
    finite_values = values if len(finite) == len(values) else values[np.isfinite(values)]
    measured = of_numbers(finite_values, finite) if len(finite) else {}
    gaps = len(values) - len(finite)
    described = Column(name=name, dtype=str(column.dtype), missing=gaps, distinct=ordered.distinct)
    return described.model_copy(update=measured)


def count_distinct(values: Array, least: int = 1) -> int:
    """Return how many different values occur in at least this many rows.

    Args:
        values: in ascending order, (rows,), without NaN.
        least: the fewest rows.
    """
    rows = len(values) - least + 1
    if rows < 1:
        return 0
    # The first row of each value counts if the row that is `least` - 1 behind it has the same value.
    is_first = values[1:rows] != values[: rows - 1]
    if least > 1:
        is_first &= values[least:] == values[1:rows]
    return int(np.count_nonzero(is_first)) + bool(values[0] == values[least - 1])


def _of_dates(dates: Array) -> dict[str, Any]:
    """Return the range and the histogram for dates, (rows,)."""
    first, last = dates.min(), dates.max()
    # As numbers of 64 bits: the difference of two dates may be larger than a duration.
    places = dates.astype(np.int64).astype(np.float64)
    counts = of_numbers(places)["histogram"]
    return {"earliest": str(first), "latest": str(last), "histogram": counts}


def of_numbers(values: Array, ordered: Array | None = None) -> dict[str, Any]:
    """Return range, mean, deviation and histogram for numbers without missing ones, (rows,) float64.

    Args:
        values: the numbers.
        ordered: the same in ascending order, which saves time.
    """
    low, high = (values.min(), values.max()) if ordered is None else (ordered[0], ordered[-1])
    largest = float(max(-low, high))
    # The sum or the square of a larger number may be infinite, and a smaller range has no room for bins.
    unit = largest if largest > MAX_SQUARED or 0 < largest < MIN_SQUARED else 1.0
    scaled, ends = (values if unit == 1.0 else values / unit), (float(low) / unit, float(high) / unit)
    if not can_divide(*ends, BINS):
        counts: Array = np.asarray([len(values)])
    elif ordered is None:
        counts = np.histogram(scaled, bins=BINS, range=ends)[0]
    else:
        # Of all bins, only the last one includes its upper end.
        inner = np.linspace(*ends, BINS + 1)[1:-1]
        below = np.searchsorted(ordered if unit == 1.0 else ordered / unit, inner)
        counts = np.diff(below, prepend=0, append=len(ordered))
    return {
        "min": float(low),
        "max": float(high),
        "mean": float(scaled.mean()) * unit,
        "std": standard_deviation(scaled) * unit,
        "histogram": tuple(int(count) for count in counts),
    }


def standard_deviation(values: Array) -> float:
    """Return the numbers' standard deviation, (rows,) float64, to the same bit as NumPy.

    NumPy makes an array with all squared deviations, whose pages take longer than its numbers.
    """
    return float(np.sqrt(_squared_deviations(values, values.mean()) / len(values)))


def _squared_deviations(values: Array, mean: Any) -> Any:
    """Return the squared deviations from a mean, summed in the same order as NumPy's pairwise sum."""
    if len(values) <= PART_ROWS:
        deviations = values - mean
        deviations *= deviations
        return deviations.sum()
    half = len(values) // 2
    half -= half % 8
    return _squared_deviations(values[:half], mean) + _squared_deviations(values[half:], mean)


def _distinct(column: Array) -> int:
    """Return how many different texts or times there are, (rows,)."""
    if not is_text(column):
        return len(np.unique(column))
    words: set[str] = set()
    for start in range(0, len(column), PART_ROWS):
        words.update(column[start : start + PART_ROWS].tolist())
    return len(words)


def describe_pixels(name: str, images: Array) -> Column:
    """Return the statistics for images, (rows, height, width, channels) uint8, over all pixels."""
    counts = count_values(images)
    total = counts.sum(axis=0, keepdims=True)
    mean, variance = moments(total)
    used_values = np.flatnonzero(total[0])
    low, high = int(used_values[0]), int(used_values[-1])
    bins = BINS if high > low else 1
    histogram = np.histogram(
        np.arange(VALUES), bins=bins, range=(low, high + (high == low)), weights=total[0]
    )
    return Column(
        name=name,
        type="image",
        dtype="uint8",
        shape=images.shape[1:],
        min=low,
        max=high,
        mean=float(mean[0]),
        std=math.sqrt(variance[0]),
        histogram=tuple(int(count) for count in histogram[0]),
    )


def preview(table: Table) -> tuple[dict[str, Any], ...]:
    """Return the first rows as JSON values: None for missing numbers, nested lists for arrays.

    Rows with many values are fewer; there is none if one row alone has too many.
    """
    heads = {name: head(table.columns, name, PREVIEW_ROWS) for name in table.columns}
    row_values = sum(math.prod(column.shape[1:]) for column in heads.values())
    count = min(table.rows, PREVIEW_ROWS, PREVIEW_VALUES // max(row_values, 1))
    return tuple({name: _json(column[i]) for name, column in heads.items()} for i in range(count))


def _json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            # JSON has no NaN.
            numbers = value.astype(object)
            numbers[~np.isfinite(value)] = None
            return numbers.tolist()
        return value.tolist()
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, str):
        return value if len(value) <= PREVIEW_CHARACTERS else f"{value[:PREVIEW_CHARACTERS]}…"
    plain = value.item()
    return None if isinstance(plain, float) and not np.isfinite(plain) else plain


def count_duplicates(x: Array, y: Array) -> int:
    """Return how many rows have the same features and target as an earlier row."""
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


def find_issues(
    table: Table,
    *,
    target: str,
    features: Sequence[str],
    class_labels: Sequence[str],
    class_counts: Sequence[int],
    duplicates: int,
    distinct: Mapping[str, int | None],
) -> tuple[str, ...]:
    """Return messages about possible problems: leakage, imbalance, constant columns, duplicates.

    Args:
        table: the columns.
        target: the target column's name.
        features: the feature names.
        class_labels: the class or label names.
        class_counts: rows for each; empty for regression.
        duplicates: the duplicate row count.
        distinct: how many values each column has, a missing one included; None for arrays.
    """
    messages = []
    constant = 0
    target_values = table.columns[target]
    for name in features:
        if distinct[name] is None:
            continue
        if distinct[name] == 1:
            constant += 1
            if constant <= MOST_NAMED:
                messages.append(f"Column {name!r} is constant and contains no information.")
        elif distinct[name] == distinct[target] and _same_partition(
            table.columns[name], target_values, distinct[name] or 0
        ):
            messages.append(f"Column {name!r} determines the target exactly: it probably leaks the target.")
    if constant > MOST_NAMED:
        messages.append(f"{constant - MOST_NAMED:,} more columns are constant.")
    if duplicates:
        share = duplicates / table.rows
        many = f"{duplicates:,} rows ({share:.1%}) repeat" if duplicates > 1 else "One row repeats"
        messages.append(f"{many} an earlier row and may be in another part of the split.")
    # Class weights are for one class in each row.
    advice = "" if sum(class_counts) != table.rows else "; consider class weights"
    messages.extend(_imbalance(class_labels, class_counts, advice))
    return tuple(messages)


def _same_partition(column: Array, target: Array, distinct: int) -> bool:
    """Return whether the `distinct` values in `column` and in `target` correspond one to one."""
    # In a few rows, and below for a target with hardly any repeated value, this happens by chance.
    if target.ndim > 1 or len(target) < 10:
        return False
    if column.dtype.kind in NUMBERS and target.dtype.kind in NUMBERS and np.array_equal(column, target):
        return True
    if distinct > len(target) // 2:
        return False
    # As many distinct pairs as distinct targets: each target occurs with one value of the column only.
    codes = np.unique(column, return_inverse=True)[1] * distinct + np.unique(target, return_inverse=True)[1]
    return len(np.unique(codes)) == distinct


def class_counts(y: Array, task: Task, outputs: int) -> tuple[int, ...]:
    """Return how many rows each class or label has; empty for regression."""
    if task in ("binary", "multiclass"):
        return tuple(int(n) for n in np.bincount(y, minlength=outputs))
    if task == "multilabel":
        return tuple(int(n) for n in y.sum(axis=0))
    return ()


def _imbalance(labels: Sequence[str], counts: Sequence[int], advice: str) -> list[str]:
    if not counts:
        return []
    smallest, largest = int(np.argmin(counts)), int(np.argmax(counts))
    messages = []
    if counts[largest] >= IMBALANCE * max(counts[smallest], 1):
        messages.append(
            f"The classes are imbalanced: {labels[largest]!r} has {counts[largest]} rows, "
            f"{labels[smallest]!r} has {counts[smallest]}{advice}."
        )
    if counts[smallest] < 3:
        messages.append(
            f"Class {labels[smallest]!r} has {counts[smallest]} row(s), too few for training, "
            "validation and test."
        )
    return messages
