"""Metrics on weighted rows equal scikit-learn's, everywhere in the engine."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sklearn

from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.data.weights import RowWeights
from workers.engine.evaluation.ensemble_weights import fit_weights, leave_one_out, loss_terms, pooled_loss
from workers.engine.evaluation.evaluate import evaluate
from workers.engine.evaluation.gate_metrics import constant_prediction, estimate, estimate_gain
from workers.engine.evaluation.members import MemberPredictions, compare_members
from workers.engine.models.losses import compute_metrics

ROWS = 60


def data_of(task: Task, seed: int = 0) -> tuple[Array, Array]:
    """Return true values and predictions, some wrong and some equal."""
    rng = np.random.default_rng(seed)
    if task == "regression":
        y = rng.normal(size=(ROWS, 2))
        return y, y + rng.normal(scale=0.5, size=y.shape)
    if task == "multilabel":
        truth = rng.random((ROWS, 3)) < 0.4
        return truth.astype(np.float32), np.round(
            np.clip(0.6 * truth + 0.5 * rng.random(truth.shape), 0, 1), 1
        )
    classes = 2 if task == "binary" else 3
    labels = rng.integers(0, classes, ROWS)
    p = np.round(rng.random((ROWS, classes)) + np.eye(classes)[labels] * 0.8 + 0.1, 1)
    p /= p.sum(axis=1, keepdims=True)
    return labels, p if classes > 2 else p[:, 1:]


COUNTS = np.random.default_rng(5).integers(0, 4, ROWS)
WEIGHTS = RowWeights("w", COUNTS / COUNTS.max())
SHARES = np.random.default_rng(6).random(ROWS)


def classes_of(p: Array) -> Array:
    return p.argmax(axis=1) if p.shape[1] > 1 else (p[:, 0] > 0.5).astype(int)


EXPECTED: dict[Task, dict[str, Callable[[Array, Array, Array], Any]]] = {
    "binary": {
        "accuracy": lambda y, p, w: sklearn.accuracy_score(y, classes_of(p), sample_weight=w),
        "log_loss": lambda y, p, w: sklearn.log_loss(y, p, sample_weight=w),
        "f1_macro": lambda y, p, w: sklearn.f1_score(y, classes_of(p), average="macro", sample_weight=w),
        "roc_auc": lambda y, p, w: sklearn.roc_auc_score(y, p[:, 0], sample_weight=w),
        "precision": lambda y, p, w: sklearn.precision_score(y, classes_of(p), sample_weight=w),
        "recall": lambda y, p, w: sklearn.recall_score(y, classes_of(p), sample_weight=w),
    },
    "multiclass": {
        "accuracy": lambda y, p, w: sklearn.accuracy_score(y, classes_of(p), sample_weight=w),
        "log_loss": lambda y, p, w: sklearn.log_loss(y, p, sample_weight=w),
        "f1_macro": lambda y, p, w: sklearn.f1_score(y, classes_of(p), average="macro", sample_weight=w),
        "top_5_accuracy": lambda y, p, w: 1.0,
    },
    "multilabel": {
        "accuracy": lambda y, p, w: np.average(((p > 0.5) == (y > 0.5)).mean(axis=1), weights=w),
        "f1_macro": lambda y, p, w: sklearn.f1_score(y > 0.5, p > 0.5, average="macro", sample_weight=w),
        "precision": lambda y, p, w: sklearn.precision_score(
            y > 0.5, p > 0.5, average="micro", sample_weight=w
        ),
        "recall": lambda y, p, w: sklearn.recall_score(y > 0.5, p > 0.5, average="micro", sample_weight=w),
        "roc_auc": lambda y, p, w: sklearn.roc_auc_score(y, p, average="micro", sample_weight=w),
    },
    "regression": {
        "mae": lambda y, p, w: sklearn.mean_absolute_error(y, p, sample_weight=w),
        "mse": lambda y, p, w: sklearn.mean_squared_error(y, p, sample_weight=w),
        "rmse": lambda y, p, w: np.sqrt(sklearn.mean_squared_error(y, p, sample_weight=w)),
        "r2": lambda y, p, w: sklearn.r2_score(y, p, sample_weight=w),
    },
}
LOSSES: dict[Task, str] = {
    "binary": "binary_crossentropy",
    "multiclass": "sparse_categorical_crossentropy",
    "multilabel": "binary_crossentropy",
    "regression": "mse",
}
VALIDATION = {"roc_auc": "auc"}
"""Names of metrics during a training that differ from those of an evaluation."""


@pytest.mark.parametrize("task", EXPECTED)
def test_a_metric_is_that_of_scikit_learn_and_the_same_number_everywhere(task: Task) -> None:
    y, p = data_of(task)
    report = evaluate(task, y, p, weights=RowWeights("w", SHARES))
    assert report.weighted_by == "w"
    for name, expected in EXPECTED[task].items():
        value = pytest.approx(expected(y, p, SHARES), rel=1e-6)
        assert estimate(name, task, y, p, weights=SHARES).value == value, name
        if name in report.metrics:
            assert report.metrics[name].value == value, name
        if name not in ("log_loss", "f1_macro"):
            named = VALIDATION.get(name, name)
            metrics = compute_metrics(LOSSES[task], (named,), y, p, None, SHARES)
            assert metrics[named] == value, name
    if "log_loss" in EXPECTED[task]:
        loss = compute_metrics(LOSSES[task], (), y, p, None, SHARES)["loss"]
        assert loss == pytest.approx(report.metrics["log_loss"].value, rel=1e-6)


@pytest.mark.parametrize("task", EXPECTED)
def test_a_row_of_weight_2_counts_like_two_rows(task: Task) -> None:
    y, p = data_of(task)
    weighted = evaluate(task, y, p, weights=WEIGHTS)
    repeated = evaluate(task, np.repeat(y, COUNTS, axis=0), np.repeat(p, COUNTS, axis=0))
    for name, metric in weighted.metrics.items():
        assert metric.value == pytest.approx(repeated.metrics[name].value), name
        assert metric.rows == ROWS
    if weighted.task == "regression" and repeated.task == "regression":
        assert weighted.target_std == pytest.approx(repeated.target_std)
        assert [output.rmse for output in weighted.outputs] == pytest.approx(
            [output.rmse for output in repeated.outputs]
        )
        return
    assert weighted.task != "regression" and repeated.task != "regression"
    for one, other in zip(weighted.per_class, repeated.per_class, strict=True):
        assert (one.precision, one.recall, one.f1) == pytest.approx((other.precision, other.recall, other.f1))
        assert one.roc_auc == pytest.approx(other.roc_auc)
    assert weighted.calibration.bias == pytest.approx(repeated.calibration.bias)


def test_the_roc_curve_is_weighted() -> None:
    y, p = data_of("binary")
    evaluation = evaluate("binary", y, p, weights=RowWeights("w", SHARES))
    assert evaluation.task == "binary"
    false, true, _ = sklearn.roc_curve(y, p[:, 0], sample_weight=SHARES, drop_intermediate=False)
    np.testing.assert_allclose(evaluation.roc_curve, np.column_stack([false, true]), atol=1e-12)


def test_counts_of_rows_are_not_weighted() -> None:
    y, p = data_of("multiclass")
    weighted, plain = evaluate("multiclass", y, p, weights=WEIGHTS), evaluate("multiclass", y, p)
    assert weighted.task == plain.task == "multiclass"
    assert weighted.confusion == plain.confusion
    assert [entry.support for entry in weighted.per_class] == [entry.support for entry in plain.per_class]
    assert (weighted.rows, plain.weighted_by) == (ROWS, "")


def test_the_interval_of_a_weighted_share_is_wider_than_if_each_row_counts() -> None:
    right = np.arange(ROWS) % 3 > 0
    p = np.where(right, 0.9, 0.1)[:, None]
    few = np.where(np.arange(ROWS) < 6, 1.0, 0.01)
    plain = evaluate("binary", np.ones(ROWS, int), p).metrics["accuracy"]
    weighted = evaluate("binary", np.ones(ROWS, int), p, weights=RowWeights("w", few)).metrics["accuracy"]
    assert (plain.interval, weighted.interval) == ("wilson", "bootstrap")
    assert weighted.high is not None and weighted.low is not None
    assert plain.high is not None and plain.low is not None
    assert weighted.high - weighted.low > 2 * (plain.high - plain.low)


@pytest.mark.parametrize("task", ["binary", "multilabel", "regression"])
def test_the_constant_that_gates_compare_with_is_weighted(task: Task) -> None:
    y, p = data_of(task)
    constant = constant_prediction(task, y, 5, 2, COUNTS.astype(float))
    np.testing.assert_allclose(constant, constant_prediction(task, np.repeat(y, COUNTS, axis=0), 5, 2))
    name, sign = ("rmse", -1) if task == "regression" else ("log_loss", -1)
    whole = np.repeat(constant[:1], ROWS, axis=0)
    gain = estimate_gain(name, task, y, p, whole, sign=sign, weights=SHARES)
    ours, theirs = (estimate(name, task, y, predictions, weights=SHARES).value for predictions in (p, whole))
    assert gain.value == pytest.approx(theirs - ours)
    assert gain.low < gain.value < gain.high


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_the_weights_of_members_are_fitted_to_weighted_rows(task: Task) -> None:
    y, first = data_of(task)
    second = data_of(task, seed=1)[1] if task == "binary" else y + 1.0
    terms = loss_terms(task, y, (first, second))
    fit = fit_weights(task, terms, COUNTS.astype(float))
    again = fit_weights(task, np.repeat(terms, COUNTS, axis=1))
    np.testing.assert_allclose(fit.weights, again.weights, atol=1e-3)
    assert fit.loss == pytest.approx(again.loss)
    gains = leave_one_out(task, terms, fit.weights, COUNTS.astype(float))
    np.testing.assert_allclose(gains, leave_one_out(task, np.repeat(terms, COUNTS, axis=1), fit.weights))
    assert pooled_loss(task, terms, fit.weights, COUNTS.astype(float)) == pytest.approx(fit.loss)


def test_the_best_member_is_chosen_on_weighted_rows() -> None:
    y = np.arange(ROWS) % 2
    # The first member is right on 50 rows of little weight, the second on the others.
    right = np.arange(ROWS) < 50
    first, second = (np.where(correct == (y == 1), 0.8, 0.2)[:, None] for correct in (right, ~right))
    weights = RowWeights("w", np.where(right, 0.01, 1.0))
    members = MemberPredictions(
        "binary", ("a", "b"), ("a", "b"), np.arange(ROWS), y, (first, second), weights
    )
    report = compare_members(members, "weighted", 0)
    assert (report.best_single, report.weighted_by) == ("b", "w")
    assert report.candidate("b").metrics["accuracy"].value == pytest.approx(10 / 10.5)
    assert report.weights[1].weight > 0.9
