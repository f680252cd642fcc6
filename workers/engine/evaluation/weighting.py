"""Computes means and sums over rows that count once each, or by their weights.

Every metric takes row weights, (rows,); None counts each row once. They have the same meaning
as scikit-learn's `sample_weight`: a row with weight 2 counts like two equal rows.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.engine.arrays import Array, Bools, Floats

Weights = Floats | None


def mean(values: npt.NDArray[Any], weights: Weights = None) -> float:
    """Return the mean of values, (rows, …), over rows and all else; NaN if the rows have no weight."""
    if weights is None:
        return float(values.mean())
    total = weights.sum()
    if not total > 0:
        return math.nan
    return float(values.reshape(len(values), -1).mean(axis=1) @ weights / total)


def column_means(values: Array, weights: Weights = None) -> Floats:
    """Return each column's mean, (columns,)."""
    if weights is None:
        return np.asarray(values.mean(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(weights @ values / weights.sum())


def column_sums(values: Array, weights: Weights = None) -> Array:
    """Return each column's sum, (columns,)."""
    return np.asarray(values.sum(axis=0) if weights is None else weights @ values)


def precision(truth: Bools, guess: Bools, weights: Weights = None) -> float:
    """Return the share of true ones among the predicted ones, (values,); 0 if none is predicted."""
    if weights is None:
        return float((truth & guess).sum() / max(int(guess.sum()), 1))
    predicted = guess @ weights
    return float((truth & guess) @ weights / predicted) if predicted > 0 else 0.0


def recall(truth: Bools, guess: Bools, weights: Weights = None) -> float:
    """Return the share of predicted ones among the true ones, (values,); 0 if none is true."""
    return precision(guess, truth, weights)


def of_each_value(weights: Weights, values: Array) -> Weights:
    """Return a weight for each of the values, (rows, …), flattened as by `numpy.ravel`."""
    return None if weights is None else np.repeat(weights, values.size // len(values))


def of_rows(weights: Weights, rows: Array) -> Weights:
    """Return the weights for some rows."""
    return None if weights is None else weights[rows]
