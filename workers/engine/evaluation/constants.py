"""Chooses the constant prediction that has the best score in a metric.

It has the meaning of scikit-learn's `DummyClassifier` and `DummyRegressor`: the most frequent class for
accuracy, the class frequencies for a cross-entropy, the mean for a squared error and the median for an
absolute one, all of the training rows.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from jobs.spec.data.profile import Profile
from jobs.spec.sections.baseline import LONGEST_LABEL, Constant
from workers.engine.arrays import Array, Floats
from workers.engine.evaluation.gate_metrics import constant_prediction
from workers.engine.evaluation.regression import columns
from workers.engine.evaluation.weighting import Weights
from workers.engine.report import finite_or_none

MEANS = frozenset({"mse", "rmse", "r2"})
"""Losses and metrics for which no constant is better than the mean."""
MEDIANS = frozenset({"mae"})
FREQUENCIES = frozenset({"loss", "auc"})
CROSS_ENTROPIES = frozenset(
    {"binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy"}
)
"""Losses for which no constant is better than the frequencies; another may prefer the most frequent class."""
NAMES_OF_KERAS = {
    "acc": "accuracy",
    "binary_accuracy": "accuracy",
    "categorical_accuracy": "accuracy",
    "sparse_categorical_accuracy": "accuracy",
    "top_k_categorical_accuracy": "top_5_accuracy",
    "sparse_top_k_categorical_accuracy": "top_5_accuracy",
    "mean_squared_error": "mse",
    "root_mean_squared_error": "rmse",
    "mean_absolute_error": "mae",
    "r2_score": "r2",
}
"""Names that user code may give to our metrics."""


class ConstantRow(NamedTuple):
    """The prediction for each row: the model's outputs, (outputs,), and its description."""

    outputs: Floats
    constant: Constant


def constant_rows(metric: str, loss: str, profile: Profile, y: Array, weights: Weights) -> list[ConstantRow]:
    """Return the constant predictions of which one has the best score; empty if there is none.

    A constant's recall can be 1, which no model exceeds, so recall has none. For the losses between the
    squared and the absolute error it is the mean or the median, and for a loss of classes that is no
    cross-entropy the frequencies or the most frequent class.

    Args:
        metric: `loss`, or the metric's name.
        loss: the loss's name; empty if it is unknown.
        profile: describes the data.
        y: the training rows' targets, (rows, …).
        weights: for the training rows, (rows,); None if each counts once.
    """
    metric = NAMES_OF_KERAS.get(metric, metric)
    if profile.task == "regression":
        return _of_numbers(metric, loss, columns(y), weights)
    if profile.task == "multilabel":
        return _of_labels(metric, loss, profile, constant_prediction("multilabel", y, 1, 0, weights)[0])
    frequencies = constant_prediction(profile.task, y, 1, profile.outputs, weights)[0]
    return _of_classes(metric, loss, profile, frequencies)


def _of_numbers(metric: str, loss: str, y: Floats, weights: Weights) -> list[ConstantRow]:
    if metric not in {"loss", *MEANS, *MEDIANS}:
        return []
    mean, median = constant_prediction("regression", y, 1, 0, weights)[0], _medians(y, weights)
    rows = [
        ConstantRow(mean, Constant(kind="mean", value=_only(mean))),
        ConstantRow(median, Constant(kind="median", value=_only(median))),
    ]
    measure = loss if metric == "loss" else metric
    return rows[:1] if measure in MEANS else rows[1:] if measure in MEDIANS else rows


def _only(values: Floats) -> float | None:
    return finite_or_none(values[0]) if len(values) == 1 else None


def _medians(y: Floats, weights: Weights) -> Floats:
    if weights is None:
        return np.asarray(np.median(y, axis=0))
    return np.array([np.quantile(column, 0.5, weights=weights, method="inverted_cdf") for column in y.T])


def _of_classes(metric: str, loss: str, profile: Profile, frequencies: Floats) -> list[ConstantRow]:
    is_binary = profile.task == "binary"
    most, labels = int(frequencies.argmax()), profile.class_labels

    def always(index: int) -> list[ConstantRow]:
        outputs = np.eye(len(frequencies))[index]
        return [ConstantRow(outputs[1:] if is_binary else outputs, _named("class", labels, index))]

    if metric == "accuracy":
        return always(most)
    # If no row is predicted to have class 1, precision is 0.
    if metric == "precision":
        return always(1)
    kind = Constant(kind="classes" if metric == "top_5_accuracy" else "frequencies")
    outputs = frequencies[1:] if is_binary else frequencies
    if metric not in FREQUENCIES | {"top_5_accuracy"}:
        return []
    return [ConstantRow(outputs, kind), *(always(most) if _may_prefer_one(metric, loss) else [])]


def _may_prefer_one(metric: str, loss: str) -> bool:
    """Return whether a prediction without doubt may have a better score than the frequencies."""
    return metric == "loss" and loss not in CROSS_ENTROPIES


def _of_labels(metric: str, loss: str, profile: Profile, rates: Floats) -> list[ConstantRow]:
    likely = ConstantRow((rates > 0.5).astype(float), Constant(kind="labels"))
    if metric == "accuracy":
        return [likely]
    if metric == "precision":
        most = int(rates.argmax())
        return [ConstantRow(np.eye(len(rates))[most], _named("label", profile.class_labels, most))]
    if metric not in FREQUENCIES:
        return []
    return [
        ConstantRow(rates, Constant(kind="frequencies")),
        *([likely] if _may_prefer_one(metric, loss) else []),
    ]


def _named(kind: Literal["class", "label"], labels: Sequence[str], index: int) -> Constant:
    name = str(labels[index]) if index < len(labels) else str(index)
    return Constant(kind=kind, value=name[:LONGEST_LABEL])
