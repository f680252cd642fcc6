"""Losses and metrics on the host, compared with Keras and scikit-learn."""

import numpy as np
import pytest

from jobs.spec.sections import measures
from jobs.spec.sections.fit import FitSpec
from workers.engine.errors import BadSpec
from workers.engine.models.losses import LOSSES, compute_metrics, loss_name, metric_names

RNG = np.random.default_rng(0)
CLASSES = RNG.integers(0, 4, 200)
LOGITS = RNG.normal(size=(200, 4))
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
BITS = RNG.integers(0, 2, 200)
SCORES = RNG.uniform(size=(200, 1))
VALUES, GUESSES = RNG.normal(size=(200, 2)), RNG.normal(size=(200, 2))


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_on_the_host_is_that_of_keras(name: str) -> None:
    import keras

    tasks, (kind, host) = measures.LOSSES[name], LOSSES[name]
    y, p = {"multiclass": (CLASSES, PROBABILITIES), "binary": (BITS[:, None], SCORES)}.get(
        tasks[0], (VALUES, GUESSES)
    )
    expected = float(getattr(keras.losses, kind)()(y, p))
    assert host(y, p, None) == pytest.approx(expected, rel=1e-5)
    weights = RNG.uniform(size=len(y))
    loss = getattr(keras.losses, kind)(reduction="mean_with_sample_weight")
    assert host(y, p, weights) == pytest.approx(float(loss(y, p, sample_weight=weights)), rel=1e-5)


def test_metrics_are_those_of_scikit_learn() -> None:
    from sklearn import metrics

    scores = compute_metrics(
        "binary_crossentropy", ("accuracy", "auc", "precision", "recall"), BITS, SCORES, None
    )
    hard = SCORES[:, 0] > 0.5
    assert scores["auc"] == pytest.approx(metrics.roc_auc_score(BITS, SCORES[:, 0]))
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(BITS, hard))
    assert scores["precision"] == pytest.approx(metrics.precision_score(BITS, hard))
    assert scores["recall"] == pytest.approx(metrics.recall_score(BITS, hard))


def test_r2_is_that_of_scikit_learn_and_the_loss_is_in_units_of_the_spread() -> None:
    from sklearn.metrics import r2_score

    scores = compute_metrics("mse", ("r2", "mse"), VALUES, GUESSES, np.array([2.0, 2.0]))
    assert scores["r2"] == pytest.approx(r2_score(VALUES, GUESSES))
    assert scores["loss"] == pytest.approx(scores["mse"] / 4)


def test_names_that_do_not_apply_to_the_task_are_rejected_with_those_that_do() -> None:
    with pytest.raises(BadSpec, match="'mse' does not apply to a multiclass task; available are sparse"):
        loss_name(FitSpec(loss="mse"), "multiclass")
    with pytest.raises(BadSpec, match="'r2' does not apply to a binary"):
        metric_names(FitSpec(metrics=("r2",)), "binary")


@pytest.mark.parametrize(
    ("metric", "better"), [("val_accuracy", "max"), ("val_loss", "min"), ("val_r2", "max")]
)
def test_more_is_better_for_accuracy_and_less_for_loss(metric: str, better: str) -> None:
    assert measures.direction(metric) == better
