"""Converts the results of metrics to numbers: a metric may return one for each class."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

MAX_PARTS = 20
"""A result with more numbers is recorded as their mean alone."""


def numbers_of(results: Mapping[str, Any]) -> dict[str, float]:
    """Return metric results as numbers by name.

    A result with several numbers, such as that of `keras.metrics.F1Score()`, is recorded as their mean under
    its own name, which is `average="macro"`, and as each number under `<name>_<index>`.
    """
    return dict(pair for name, result in results.items() for pair in _named(str(name), np.asarray(result)))


def notes_on(results: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each metric that returns several numbers."""
    sizes = {str(name): np.asarray(result).size for name, result in results.items()}
    return [
        f"the metric {name} returns {count} numbers, for example one for each class: {name} is their mean; "
        'give it average="macro" or the like for one number'
        for name, count in sizes.items()
        if count > 1
    ]


def _named(name: str, result: Any) -> Iterator[tuple[str, float]]:
    yield name, float(np.mean(result, dtype=np.float64))
    if 1 < result.size <= MAX_PARTS:
        for index in np.ndindex(result.shape):
            yield f"{name}_{'_'.join(map(str, index))}", float(result[index])
