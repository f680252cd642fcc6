"""Measures the metrics that gates compare, by name, with the interval of a value or of a difference.

The names are those of `jobs.contracts.measures.TEST_METRICS`. Targets and predictions have the shapes that
`evaluate.evaluate` takes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jobs.contracts.data import Task
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

Measure = Callable[[Array, Array], float]

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
    """Return whether each row is of class 1, and its probability of class 1, (rows,)."""
    return np.asarray(y).reshape(-1) == 1, probabilities(p)[:, 1]


def _classes(y: Array) -> Array:
    return np.asarray(y).reshape(-1).astype(np.int64)


def _precision(truth: Array, guess: Array) -> float:
    return float((truth & guess).sum() / max(int(guess.sum()), 1))


def _recall(truth: Array, guess: Array) -> float:
    return float((truth & guess).sum() / max(int(truth.sum()), 1))


def _top_5(y: Array, p: Array) -> float:
    best = np.argsort(probabilities(p), axis=1)[:, -5:]
    return float((best == _classes(y)[:, None]).any(axis=1).mean())


_ONE_CLASS: dict[str, Measure] = {
    "accuracy": lambda y, p: float((predicted_classes(p) == _classes(y)).mean()),
    "log_loss": lambda y, p: float(row_losses(y, p).mean()),
    "f1_macro": lambda y, p: macro_f1_of_classes(
        _classes(y), predicted_classes(p), probabilities(p).shape[1]
    ),
    "roc_auc": lambda y, p: roc_auc(*_positives(y, p)),
    "precision": lambda y, p: _precision(_classes(y) == 1, predicted_classes(p) == 1),
    "recall": lambda y, p: _recall(_classes(y) == 1, predicted_classes(p) == 1),
    "top_5_accuracy": _top_5,
}
_SEVERAL_LABELS: dict[str, Measure] = {
    "accuracy": lambda y, p: float(np.equal(*_labels(y, p)).mean()),
    "log_loss": lambda y, p: float(mean_label_losses(_labels(y, p)[0], np.asarray(p, np.float64)).mean()),
    "f1_macro": lambda y, p: macro_f1_of_labels(*_labels(y, p)),
    "roc_auc": lambda y, p: roc_auc(np.asarray(y).ravel() > 0.5, np.asarray(p, np.float64).ravel()),
    "precision": lambda y, p: _precision(*_labels(y, p)),
    "recall": lambda y, p: _recall(*_labels(y, p)),
}
_NUMBERS: dict[str, Measure] = {
    "rmse": lambda y, p: rmse(columns(y), columns(p)),
    "mse": lambda y, p: rmse(columns(y), columns(p)) ** 2,
    "mae": lambda y, p: mae(columns(y), columns(p)),
    "r2": lambda y, p: r_squared(columns(y), columns(p)),
}


def metric_function(name: str, task: Task) -> Measure:
    """Return the function of true and predicted values that computes a metric.

    Raises:
        KeyError: the metric is not defined for this task.
    """
    return {"multilabel": _SEVERAL_LABELS, "regression": _NUMBERS}.get(task, _ONE_CLASS)[name]


def estimate(name: str, task: Task, y: Array, p: Array, seed: int = 0) -> Estimate:
    """Return a metric on all rows with its interval.

    Predictions that are not finite make the metric undefined, for some metrics.

    Args:
        name: of the metric.
        task: the kind of prediction.
        y: targets of the rows.
        p: predictions for the rows.
        seed: of the bootstrap.

    Raises:
        KeyError: the metric is not defined for this task.
    """
    compute = metric_function(name, task)
    interval = bootstrap(lambda rows: compute(y[rows], p[rows]), len(y), seed, draws=DRAWS)
    return Estimate(compute(y, p), *interval)


def estimate_gain(
    name: str, task: Task, y: Array, p: Array, other: Array, *, sign: int, seed: int = 0
) -> Estimate:
    """Return by how much `p` is better than `other` on the same rows, with the interval of the difference.

    Differences are resampled, not the two values: so rows that are hard for both cancel out.

    Args:
        name: of the metric.
        task: the kind of prediction.
        y: targets of the rows.
        p: predictions for the rows.
        other: the predictions to compare with.
        sign: 1 if higher values of the metric are better, else -1.
        seed: of the bootstrap.
    """
    compute = metric_function(name, task)

    def difference(rows: Array) -> float:
        return sign * (compute(y[rows], p[rows]) - compute(y[rows], other[rows]))

    whole = difference(np.arange(len(y)))
    return Estimate(whole, *bootstrap(difference, len(y), seed, draws=DRAWS))


def constant_prediction(task: Task, y_train: Array, rows: int, classes: int) -> Array:
    """Return the best prediction that ignores the features, for `rows` rows.

    It is the class frequencies of the training rows, the frequency of each label, or the mean of the targets.

    Args:
        task: the kind of prediction.
        y_train: targets of the training rows, (training rows, …).
        rows: number of rows to predict.
        classes: number of classes; ignored for labels and regression.

    Returns:
        (rows, classes), (rows, labels) or (rows, outputs); all rows are equal.
    """
    train = np.asarray(y_train)
    if task in ("multilabel", "regression"):
        return np.tile(columns(train).mean(axis=0), (rows, 1))
    counts = np.bincount(_classes(train), minlength=classes)
    return np.tile(counts / counts.sum(), (rows, 1))
