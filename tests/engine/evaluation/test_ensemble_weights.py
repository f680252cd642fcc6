from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from jobs.spec.sections.data import Task
from tests.present import present
from workers.engine.arrays import Array
from workers.engine.evaluation.diversity import correlation, diversity, q_statistic
from workers.engine.evaluation.ensemble_weights import (
    equal_weights,
    fit_weights,
    held_out_losses,
    leave_one_out,
    loss_terms,
    pooled_loss,
    weighted_mean,
)
from workers.engine.evaluation.evaluate import evaluate, scores


def classifiers(
    noises: Sequence[float], rows: int = 400, classes: int = 5, seed: int = 0
) -> tuple[Array, list[Array]]:
    """Members with independent errors, which grow with their noise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    members = []
    for noise in noises:
        logits = 2 * np.eye(classes)[truth] + noise * rng.normal(size=(rows, classes))
        members.append(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
    return truth, members


def regressors(noises: Sequence[float], rows: int = 400, seed: int = 0) -> tuple[Array, list[Array]]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(50, 10, size=(rows, 1))
    return truth, [truth + noise * rng.normal(size=truth.shape) for noise in noises]


@pytest.mark.parametrize(
    ("task", "validation"),
    [("multiclass", classifiers([1.0, 2.0, 3.0])), ("regression", regressors([3.0, 6.0, 12.0]))],
)
def test_fitted_weights_beat_equal_ones_and_every_member(task: Task, validation: Any) -> None:
    truth, members = validation
    terms = loss_terms(task, truth, members)
    fit = fit_weights(task, terms)
    assert fit.weights.sum() == pytest.approx(1)
    assert fit.weights[0] > fit.weights[2]
    singles = [pooled_loss(task, terms, np.eye(3)[k]) for k in range(3)]
    assert fit.loss <= min(*singles, equal_weights(task, terms).loss) + 1e-9


def test_regression_weights_are_those_of_least_squares() -> None:
    """Independent errors: the best weights are proportional to 1 / variance."""
    truth, members = regressors([2.0, 4.0], rows=100_000)
    weights = fit_weights("regression", loss_terms("regression", truth, members)).weights
    assert weights == pytest.approx([0.8, 0.2], abs=0.01)


def test_the_pooled_loss_is_the_log_loss_of_the_pooled_predictions() -> None:
    truth, members = classifiers([1.0, 2.0])
    weights = np.array([0.7, 0.3])
    terms = loss_terms("multiclass", truth, members)
    evaluation = evaluate("multiclass", truth, weighted_mean(members, weights))
    assert pooled_loss("multiclass", terms, weights) == pytest.approx(scores(evaluation)["log_loss"])


def test_binary_members_may_give_one_column_or_two() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 50)
    p = rng.random((50, 1))
    one = loss_terms("binary", truth, [p])
    assert one == pytest.approx(loss_terms("binary", truth, [np.hstack([1 - p, p])]))


def test_multilabel_weights_are_fitted_to_the_loss_of_all_labels() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (80, 3)).astype(float)
    members = [
        np.clip(0.5 + 0.3 * (truth - 0.5) + s * rng.normal(size=truth.shape), 0.01, 0.99) for s in (0.05, 0.3)
    ]
    fit = fit_weights("multilabel", loss_terms("multilabel", truth, members))
    assert fit.weights[0] > 0.8
    evaluation = evaluate("multilabel", truth, weighted_mean(members, fit.weights))
    assert fit.loss == pytest.approx(scores(evaluation)["log_loss"])


def test_a_useless_member_is_left_out() -> None:
    truth, members = classifiers([0.5, 1.0])
    noise = np.random.default_rng(9).dirichlet(np.ones(5), len(truth))
    wrong = np.roll(members[0], 1, axis=1)
    weights = fit_weights(
        "multiclass", loss_terms("multiclass", truth, [*members, 0.5 * noise + 0.5 * wrong])
    ).weights
    assert weights[2] == 0.0


def test_loss_on_held_out_rows_is_not_below_the_fitted_one() -> None:
    truth, members = classifiers([2.0, 2.0, 2.0], rows=60)
    terms = loss_terms("multiclass", truth, members)
    assert held_out_losses("multiclass", terms, seed=0).mean() >= fit_weights("multiclass", terms).loss


def test_leaving_out_the_best_member_costs_most() -> None:
    truth, members = classifiers([1.0, 2.0, 3.0])
    terms = loss_terms("multiclass", truth, members)
    gains = leave_one_out("multiclass", terms, fit_weights("multiclass", terms).weights)
    assert gains.argmax() == 0
    assert leave_one_out("multiclass", terms, np.array([1.0, 0.0, 0.0]))[0] > 0


def test_q_is_one_for_equal_members_and_undefined_without_any_error() -> None:
    right = np.array([True, True, False, True])
    assert q_statistic(right, right) == 1.0
    assert q_statistic(right, ~right) == -1.0
    assert q_statistic(np.ones(4, bool), np.ones(4, bool)) is None


def test_correlation_with_a_constant_is_undefined() -> None:
    assert correlation(np.zeros(5), np.arange(5)) is None
    assert correlation(np.arange(5), np.arange(5)) == pytest.approx(1)


def test_diversity_of_classifiers_compares_every_pair() -> None:
    truth, members = classifiers([1.0, 2.0, 3.0])
    comparison = diversity("multiclass", truth, [*members, members[0]], ["a", "b", "c", "d"])
    assert len(comparison.pairs) == 6
    same = next(pair for pair in comparison.pairs if (pair.a, pair.b) == ("a", "d"))
    assert (same.disagreement, same.q_statistic) == (0.0, 1.0)
    assert same.error_correlation == pytest.approx(1)
    assert 0 < present(comparison.mean_disagreement) < 1


def test_diversity_of_regressors_correlates_residuals() -> None:
    truth, (a, b) = regressors([3.0, 3.0])
    (pair,) = diversity("regression", truth, [a, b], ["a", "b"]).pairs
    assert abs(present(pair.error_correlation)) < 0.2
    assert pair.q_statistic is None
    assert pair.disagreement == pytest.approx(np.abs(a - b).mean() / truth.std())
