"""Finds which targets a loss of the code takes: class numbers, or one number for each class."""

from typing import Any

import keras
import numpy as np

from workers.engine.arrays import Array

ROWS = 16
"""Random rows that a loss compares."""


def compares_each_class(loss: Any, width: int) -> bool:
    """Return whether a loss compares each output of a model with a target of its own.

    Such a loss fails with class numbers, or they are repeated over the outputs: it is then equal for outputs
    in any order. A loss that takes class numbers selects the output of the class.

    Args:
        loss: a function or an instance, as the code compiles a model with it.
        width: how many outputs the model has: one for each class.
    """
    generator = np.random.default_rng(0)
    # As many rows as outputs could be compared with each other by mistake.
    rows = ROWS + (width == ROWS)
    # Some classes are more frequent, so that a mean over all classes differs as well.
    y = np.sort(generator.integers(0, width, (2, rows)), axis=0)[0].astype(np.int32)
    predictions = generator.dirichlet(np.ones(width), rows).astype(np.float32)
    values = [_value(loss, y, part) for part in (predictions, np.roll(predictions, 1, axis=1))]
    if None not in values:
        return bool(np.allclose(*values, rtol=1e-4, atol=1e-6))
    return _value(loss, np.eye(width, dtype=np.float32)[y], predictions) is not None


def _value(loss: Any, y: Array, predictions: Array) -> float | None:
    """Return the mean of a loss; None if it fails."""
    try:
        result = loss(keras.ops.convert_to_tensor(y), keras.ops.convert_to_tensor(predictions))
        return float(np.mean(keras.ops.convert_to_numpy(result)))
    # Code of users may raise anything; the loss then takes other targets, or fails in the dry build.
    except Exception:  # noqa: BLE001
        return None
