"""Hyperparameter importance on functions with known results."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from jobs.contracts.analysis import ImportanceRequest
from workers.engine.analysis.fanova import leaves, main_effects
from workers.engine.analysis.importance import MAX_TRIALS, importance


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
