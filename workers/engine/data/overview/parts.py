"""Describes the target in each split part."""

from collections.abc import Sequence

import numpy as np

from jobs.messages.overview import CLASSES, PartRows
from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.data.split import Parts
from workers.engine.data.statistics import class_counts
from workers.engine.report import finite_or_none


def most_frequent(counts: Sequence[int]) -> list[int]:
    """Return the most frequent classes' numbers, ascending."""
    order = sorted(range(len(counts)), key=lambda number: -counts[number])
    return sorted(order[:CLASSES])


def balance(y: Array, task: Task, outputs: int, parts: Parts, classes: Sequence[int]) -> tuple[PartRows, ...]:
    """Return each part's target: rows for each class, or a number's distribution.

    Args:
        y: targets, (rows, …).
        task: the prediction task.
        outputs: how many classes or labels there are.
        parts: each part's row numbers.
        classes: which classes are listed, by their numbers.
    """
    part_rows = []
    for name in ("train", "validation", "test"):
        rows = getattr(parts, name)
        if task == "regression":
            part_rows.append(PartRows(part=name, rows=len(rows), **_distribution(y[rows][:, 0])))
        else:
            counts = class_counts(y[rows], task, outputs)
            part_rows.append(
                PartRows(part=name, rows=len(rows), counts=tuple(counts[number] for number in classes))
            )
    return tuple(part_rows)


def _distribution(values: Array) -> dict[str, float | None]:
    numbers = values.astype(np.float64)
    return {
        "mean": finite_or_none(numbers.mean()),
        "std": finite_or_none(numbers.std()),
        "min": finite_or_none(numbers.min()),
        "max": finite_or_none(numbers.max()),
    }
