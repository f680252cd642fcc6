"""Defines losses and metrics by name: for Keras during training, and exactly, on the host, for evaluation.

Validation and test metrics are computed here from whole prediction arrays in float64, not as means over
batch means. So they do not depend on batch size, padding or the device count.
"""

from collections.abc import Callable, Sequence

import numpy as np

from jobs.spec.sections import measures
from jobs.spec.sections.data import Task
from jobs.spec.sections.fit import FitSpec
from workers.engine.arrays import Array
from workers.engine.errors import BadSpec
from workers.engine.evaluation.classification import EPSILON
from workers.engine.evaluation.roc import roc_auc
from workers.engine.evaluation.weighting import (
    Weights,
    column_means,
    column_sums,
    mean,
    of_each_value,
    precision,
    recall,
)

Measure = Callable[[Array, Array, Weights], float]
"""Takes true values, predictions and weights of all rows."""


def _cross_entropy(y: Array, p: Array, weights: Weights) -> float:
    """The true class's mean negative log probability; y (rows,), p (rows, classes)."""
    # Keras' loss divides by the sum too: probabilities computed in 16 bits do not add up to 1
    p = p / p.sum(axis=1, keepdims=True)
    return mean(-np.log(np.clip(p[np.arange(len(y)), y], EPSILON, 1 - EPSILON)), weights)


def _binary_cross_entropy(y: Array, p: Array, weights: Weights) -> float:
    p = np.clip(p, EPSILON, 1 - EPSILON)
    y = y.reshape(p.shape)
    return mean(-(y * np.log(p) + (1 - y) * np.log(1 - p)), weights)


def _squared(y: Array, p: Array, weights: Weights) -> float:
    return mean(np.square(y - p), weights)


def _absolute(y: Array, p: Array, weights: Weights) -> float:
    return mean(np.abs(y - p), weights)


def _huber(y: Array, p: Array, weights: Weights) -> float:
    error = np.abs(y - p)
    return mean(np.where(error <= 1, 0.5 * error**2, error - 0.5), weights)


def _log_cosh(y: Array, p: Array, weights: Weights) -> float:
    error = np.abs(y - p)
    # log(cosh(e)) without computing cosh(e), which overflows for large errors
    return mean(error + np.log1p(np.exp(-2 * error)) - np.log(2.0), weights)


def _accuracy(y: Array, p: Array, weights: Weights) -> float:
    """Share of correct classes; for multilabel targets, share of correct labels."""
    if y.ndim == 1 and p.shape[1] > 1:
        return mean(p.argmax(axis=1) == y, weights)
    return mean((p > 0.5) == (y.reshape(p.shape) > 0.5), weights)


def _top_5(y: Array, p: Array, weights: Weights) -> float:
    best = np.argsort(p, axis=1)[:, -5:]
    return mean((best == y[:, None]).any(axis=1), weights)


def _auc(y: Array, p: Array, weights: Weights) -> float:
    return roc_auc(y.ravel() > 0.5, p.ravel(), of_each_value(weights, p))


def _precision(y: Array, p: Array, weights: Weights) -> float:
    return precision(y.ravel() > 0.5, p.ravel() > 0.5, of_each_value(weights, p))


def _recall(y: Array, p: Array, weights: Weights) -> float:
    return recall(y.ravel() > 0.5, p.ravel() > 0.5, of_each_value(weights, p))


def _r2(y: Array, p: Array, weights: Weights) -> float:
    """Share of the variance explained, averaged over target columns."""
    spread = column_sums(np.square(y - column_means(y, weights)), weights)
    # The lower bound is for a target that is constant in these rows.
    return float((1 - column_sums(np.square(y - p), weights) / np.maximum(spread, 1e-12)).mean())


LOSSES: dict[str, tuple[str, Measure]] = {
    "sparse_categorical_crossentropy": ("SparseCategoricalCrossentropy", _cross_entropy),
    "binary_crossentropy": ("BinaryCrossentropy", _binary_cross_entropy),
    "mse": ("MeanSquaredError", _squared),
    "mae": ("MeanAbsoluteError", _absolute),
    "huber": ("Huber", _huber),
    "log_cosh": ("LogCosh", _log_cosh),
}
"""Name → name of the Keras class, function on the host. The tasks are in `jobs.spec.sections.measures`."""

METRICS: dict[str, Measure] = {
    "accuracy": _accuracy,
    "top_5_accuracy": _top_5,
    "auc": _auc,
    "precision": _precision,
    "recall": _recall,
    "mse": _squared,
    "mae": _absolute,
    "rmse": lambda y, p, weights: float(np.sqrt(_squared(y, p, weights))),
    "r2": _r2,
}
"""Name → function on the host. Tasks and directions are in `jobs.spec.sections.measures`."""

DEFAULT_LOSS: dict[Task, str] = {
    "multiclass": "sparse_categorical_crossentropy",
    "binary": "binary_crossentropy",
    "multilabel": "binary_crossentropy",
    "regression": "mse",
}
WHILE_TRAINING = ("accuracy", "mse", "mae")
"""Metrics that are also computed on training batches; the others only on whole validation arrays."""


def loss_name(fit: FitSpec, task: Task) -> str:
    """Return the loss name: the spec's, or the task's default.

    Raises:
        BadSpec: the loss is unknown or does not apply to the task.
    """
    name = fit.loss or DEFAULT_LOSS[task]
    applicable = measures.losses_for(task)
    if name not in applicable:
        raise BadSpec(f"loss {name!r} does not apply to a {task} task; available are {', '.join(applicable)}")
    return name


def metric_names(fit: FitSpec, task: Task) -> tuple[str, ...]:
    """Return the metric names: the spec's, or the task's defaults.

    Raises:
        BadSpec: a metric is unknown or does not apply to the task.
    """
    names = fit.metrics if fit.metrics is not None else measures.DEFAULT_METRICS[task]
    applicable = measures.metrics_for(task)
    for name in names:
        if name not in applicable:
            raise BadSpec(
                f"metric {name!r} does not apply to a {task} task; available are {', '.join(applicable)}"
            )
    return names


def compute_metrics(
    loss: str, metrics: Sequence[str], y: Array, p: Array, scale: Array | None, weights: Weights = None
) -> dict[str, float]:
    """Compute loss and metrics over whole arrays.

    Args:
        loss: the loss name. Weight penalties are not included, so it is comparable between models.
        metrics: the metric names.
        y: true values, see `Encoded.y`.
        p: predictions, (rows, outputs).
        scale: for regression, the target's standard deviation, (outputs,); the loss is in its units, as in
            training.
        weights: row weights, (rows,); None if each counts once.

    Returns:
        `loss` and each metric by name. Regression metrics are in the target's own unit.
    """
    return {name: measure(name, loss, y, p, scale, weights) for name in ("loss", *metrics)}


def measure(name: str, loss: str, y: Array, p: Array, scale: Array | None, weights: Weights = None) -> float:
    """Compute one of the values that `compute_metrics` returns, by its name.

    Args:
        name: `loss`, or a metric.
        loss, y, p, scale, weights: see `compute_metrics`.
    """
    p = np.asarray(p, dtype=np.float64)
    y = y.astype(np.float64) if y.dtype.kind == "f" else y
    if name != "loss":
        return METRICS[name](y, p, weights)
    if scale is not None:
        y, p = y / scale, p / scale
    return LOSSES[loss][1](y, p, weights)
