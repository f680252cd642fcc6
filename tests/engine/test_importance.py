"""Hyperparameter importance on functions with known results."""

from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from jobs.contracts.analysis import ImportanceRequest, Influence
from workers.engine.analysis.fanova import leaves, main_effects
from workers.engine.analysis.importance import MAX_TRIALS, importance
from workers.engine.analysis.influence import of_number


def test_a_tree_has_the_main_effects_computed_by_hand() -> None:
    """f = 3·[x ≥ 1/2] + 1·[y ≥ 1/2] over the square: x explains 9/10 of its variance, y 1/10."""
    corners = np.array([[x, y] for x in (0.25, 0.75) for y in (0.25, 0.75)])
    tree = DecisionTreeRegressor().fit(corners, 3 * (corners[:, 0] > 0.5) + 1.0 * (corners[:, 1] > 0.5)).tree_
    low, high, value = leaves(tree, 2)
    assert (high - low).prod(axis=1).sum() == pytest.approx(1.0), "the boxes fill the square"
    assert sorted(value) == [0.0, 1.0, 3.0, 4.0]
    np.testing.assert_allclose(main_effects(tree, 2), [0.9, 0.1])


def test_a_pure_interaction_has_no_main_effects() -> None:
    corners = np.array([[x, y] for x in (0.25, 0.75) for y in (0.25, 0.75)])
    tree = DecisionTreeRegressor().fit(corners, np.array([0.0, 1.0, 1.0, 0.0])).tree_
    np.testing.assert_allclose(main_effects(tree, 2), [0.0, 0.0], atol=1e-12)


def test_the_most_important_comes_first_and_inactive_values_are_accepted() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 200))
    columns = (tuple(y), tuple(float(v) if i % 3 else None for i, v in enumerate(rng.random(200))), tuple(x))
    request = ImportanceRequest(names=("y", "noise", "x"), columns=columns, scores=tuple(4 * x + y))
    answer = importance(request)
    assert [entry.name for entry in answer.importances] == ["x", "y", "noise"]
    assert answer.importances[0].alone == pytest.approx(16 / 17, abs=0.05)
    assert answer.explained > 0.9
    assert importance(request) == answer, "the same trials give the same answer"


def test_of_many_trials_a_sample_is_enough() -> None:
    column = tuple(np.linspace(0, 1, MAX_TRIALS + 1))
    answer = importance(ImportanceRequest(names=("x",), columns=(column,), scores=column))
    assert answer.used == MAX_TRIALS


def test_equal_scores_are_rejected_with_a_message() -> None:
    column = tuple(np.linspace(0, 1, 10))
    with pytest.raises(ValueError, match="the same score"):
        importance(ImportanceRequest(names=("x",), columns=(column,), scores=(1.0,) * 10))


def found(column: Any, scores: Any, **fields: Any) -> Influence:
    request = ImportanceRequest(names=("x",), columns=(tuple(column),), scores=tuple(scores), **fields)
    (entry,) = importance(request).importances
    assert entry.influence is not None
    return entry.influence


def test_values_that_tend_to_score_better_are_named_with_their_correlation() -> None:
    rng = np.random.default_rng(1)
    x = rng.random(60)
    rising = found(x, x + rng.normal(0, 0.4, 60))
    assert rising.verdict == "higher"
    assert rising.low is not None and rising.high is not None and rising.correlation is not None
    assert 0 < rising.low < rising.correlation < rising.high < 1
    assert found(x, -x).verdict == "lower"
    assert found(x, x, direction="min").verdict == "lower", "small scores are better"


def test_a_peak_in_the_middle_and_noise_have_no_tendency() -> None:
    rng = np.random.default_rng(2)
    x = np.linspace(0, 1, 60)
    assert found(x, -((x - 0.5) ** 2)).verdict == "unclear"
    verdicts = [of_number(rng.random(20), rng.random(20)).verdict for _ in range(400)]
    assert 0.9 < verdicts.count("unclear") / 400 < 0.99, "one in twenty is expected to be wrong"


def test_a_hyperparameter_with_few_active_trials_has_no_tendency() -> None:
    scores = tuple(float(n) for n in range(20))
    column = tuple(n / 20 if n < 9 else None for n in range(20))
    influence = found(column, scores)
    assert (influence.verdict, influence.trials, influence.correlation) == ("unclear", 9, None)


def test_the_choices_that_tend_to_score_best_are_named_together() -> None:
    rng = np.random.default_rng(3)
    index = np.arange(60) % 3
    scores = np.where(index == 1, 0.5, 0.9) + rng.normal(0, 0.02, 60)
    choices = {"x": ("adam", "sgd", "rmsprop")}
    both = found((index + 0.5) / 3, scores, choices=choices)
    assert (both.verdict, both.best, both.trials) == ("choice", ("adam", "rmsprop"), 60)
    worst = found((index + 0.5) / 3, scores, choices=choices, direction="min")
    assert worst.best == ("sgd",)
    assert found((index + 0.5) / 3, rng.random(60), choices=choices).verdict == "unclear"


def test_a_choice_with_few_trials_is_not_compared() -> None:
    index = np.array([0] * 16 + [1] * 4)
    assert found((index + 0.5) / 2, 1.0 * index, choices={"x": (False, True)}).verdict == "unclear"
