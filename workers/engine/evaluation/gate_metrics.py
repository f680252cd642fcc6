"""Measures the metrics that gates compare, by name, with the interval for a value or a difference.

The names come from `jobs.spec.sections.measures.TEST_METRICS`. Targets and predictions have the shapes
that `evaluate.evaluate` takes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.evaluation.classification import (
    macro_f1_of_classes,
    macro_f1_of_labels,
    mean_label_losses,
    predicted_classes,
    probabilities,
    row_losses,
)
from workers.engine.evaluation.intervals import bootstrap
from workers.engine.evaluation.regression import columns, mae, r_squared, rmse
from workers.engine.evaluation.roc import roc_auc
from workers.engine.evaluation.weighting import (
    Weights,
    column_means,
    mean,
    of_each_value,
    of_rows,
    precision,
    recall,
)

Measure = Callable[[Array, Array, Weights], float]
"""Takes targets, predictions and weights of rows."""

DRAWS = 4_000_000
"""Rows drawn for one interval. A gate computes several, and each should take seconds at most."""


class Estimate(NamedTuple):
    """A metric with its 95 % interval; NaN where it is undefined."""

    value: float
    low: float
    high: float


def _labels(y: Array, p: Array) -> tuple[Array, Array]:
    """Return whether each label is true, and whether it is predicted, (rows, labels)."""
    guess = np.asarray(p).reshape(len(p), -1) > 0.5
    return np.asarray(y).reshape(guess.shape) > 0.5, guess


def _positives(y: Array, p: Array) -> tuple[Array, Array]:
    """Return whether each row has class 1, and its probability for class 1, (rows,)."""
    return np.asarray(y).reshape(-1) == 1, probabilities(p)[:, 1]


def _classes(y: Array) -> Array:
    return np.asarray(y).reshape(-1).astype(np.int64)


def _top_5(y: Array, p: Array, weights: Weights) -> float:
    best = np.argsort(probabilities(p), axis=1)[:, -5:]
    return mean((best == _classes(y)[:, None]).any(axis=1), weights)


def _of_labels(compute: Callable[[Array, Array, Weights], float]) -> Measure:
    """Return a measure that takes all rows' labels as one array."""

    def measure(y: Array, p: Array, weights: Weights) -> float:
        truth, guess = _labels(y, p)
        return compute(truth.ravel(), guess.ravel(), of_each_value(weights, guess))

    return measure


def _auc_of_labels(y: Array, p: Array, weights: Weights) -> float:
    scores = np.asarray(p, np.float64)
    return roc_auc(np.asarray(y).ravel() > 0.5, scores.ravel(), of_each_value(weights, scores))


_ONE_CLASS: dict[str, Measure] = {
    "accuracy": lambda y, p, w: mean(predicted_classes(p) == _classes(y), w),
    "log_loss": lambda y, p, w: mean(row_losses(y, p), w),
    "f1_macro": lambda y, p, w: macro_f1_of_classes(
        _classes(y), predicted_classes(p), probabilities(p).shape[1], w
    ),
    "roc_auc": lambda y, p, w: roc_auc(*_positives(y, p), w),
    "precision": lambda y, p, w: precision(_classes(y) == 1, predicted_classes(p) == 1, w),
    "recall": lambda y, p, w: recall(_classes(y) == 1, predicted_classes(p) == 1, w),
    "top_5_accuracy": _top_5,
}
_SEVERAL_LABELS: dict[str, Measure] = {
    "accuracy": lambda y, p, w: mean(np.equal(*_labels(y, p)), w),
    "log_loss": lambda y, p, w: mean(mean_label_losses(_labels(y, p)[0], np.asarray(p, np.float64)), w),
    "f1_macro": lambda y, p, w: macro_f1_of_labels(*_labels(y, p), w),
    "roc_auc": _auc_of_labels,
    "precision": _of_labels(precision),
    "recall": _of_labels(recall),
}
_NUMBERS: dict[str, Measure] = {
    "rmse": lambda y, p, w: rmse(columns(y), columns(p), w),
    "mse": lambda y, p, w: rmse(columns(y), columns(p), w) ** 2,
    "mae": lambda y, p, w: mae(columns(y), columns(p), w),
    "r2": lambda y, p, w: r_squared(columns(y), columns(p), w),
}


def metric_function(name: str, task: Task) -> Measure:
    """Return the function that computes a metric from true and predicted values and weights.

    Raises:
        KeyError: the metric is not defined for this task.
    """
    return {"multilabel": _SEVERAL_LABELS, "regression": _NUMBERS}.get(task, _ONE_CLASS)[name]


def estimate(name: str, task: Task, y: Array, p: Array, seed: int = 0, weights: Weights = None) -> Estimate:
    """Return a metric on all rows with its interval.

    Predictions that are not finite make the metric undefined, for some metrics.

    Args:
        name: the metric's name.
        task: the prediction task.
        y: the rows' targets.
        p: predictions for the rows.
        seed: for the bootstrap.
        weights: row weights, (rows,); None if each counts once.

    Raises:
        KeyError: the metric is not defined for this task.
    """
    compute = metric_function(name, task)

    def of_drawn(rows: Array) -> float:
        return compute(y[rows], p[rows], of_rows(weights, rows))

    return Estimate(compute(y, p, weights), *bootstrap(of_drawn, len(y), seed, draws=DRAWS))


def estimate_gain(
    name: str,
    task: Task,
    y: Array,
    p: Array,
    other: Array,
    *,
    sign: int,
    seed: int = 0,
    weights: Weights = None,
) -> Estimate:
    """Return by how much `p` is better than `other` on the same rows, with the difference's interval.

    Differences are resampled, not the two values: so rows that are hard for both cancel out.

    Args:
        name: the metric's name.
        task: the prediction task.
        y: the rows' targets.
        p: predictions for the rows.
        other: the predictions to compare with.
        sign: 1 if higher metric values are better, else -1.
        seed: for the bootstrap.
        weights: row weights, (rows,); None if each counts once.
    """
    compute = metric_function(name, task)

    def difference(rows: Array) -> float:
        drawn = of_rows(weights, rows)
        return sign * (compute(y[rows], p[rows], drawn) - compute(y[rows], other[rows], drawn))

    whole = difference(np.arange(len(y)))
    return Estimate(whole, *bootstrap(difference, len(y), seed, draws=DRAWS))


def constant_prediction(
    task: Task, y_train: Array, rows: int, classes: int, weights: Weights = None
) -> Array:
    """Return the best prediction that ignores the features, for `rows` rows.

    It is the training rows' class frequencies, each label's frequency, or the mean target.

    Args:
        task: the prediction task.
        y_train: the training rows' targets, (training rows, …).
        rows: how many rows to predict.
        classes: how many classes there are; ignored for labels and regression.
        weights: for the training rows, (training rows,); None if each counts once.

    Returns:
        (rows, classes), (rows, labels) or (rows, outputs); all rows are equal.
    """
    train = np.asarray(y_train)
    if task in ("multilabel", "regression"):
        return np.tile(column_means(columns(train), weights), (rows, 1))
    counts = np.bincount(_classes(train), weights, minlength=classes)
    return np.tile(counts / counts.sum(), (rows, 1))
