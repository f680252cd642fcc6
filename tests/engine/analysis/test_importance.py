"""Hyperparameter importance on functions with known results."""

from typing import Any

import numpy as np
import pytest

from jobs.messages.analysis import FurtherObjective, ImportanceRequest, Influence
from workers.engine.analysis.importance import MAX_TRIALS, importance
from workers.engine.analysis.influence import of_number


def test_the_most_important_comes_first_and_inactive_values_are_accepted() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 200))
    columns = (tuple(y), tuple(float(v) if i % 3 else None for i, v in enumerate(rng.random(200))), tuple(x))
    request = ImportanceRequest(names=("y", "noise", "x"), columns=columns, scores=tuple(4 * x + y))
    answer = importance(request)
    assert answer.importances[0].name == "x"
    assert answer.importances[0].alone > 0.7
    assert sum(entry.alone for entry in answer.importances) == pytest.approx(1, abs=1e-4)
    assert importance(request) == answer, "the same trials give the same answer"


def test_a_value_that_decides_only_while_it_is_active_matters() -> None:
    """One of two optimizers, the better one, uses `rate`, which decides then."""
    rng = np.random.default_rng(1)
    first, rate, noise = rng.random(200) < 0.5, rng.random(200), rng.random(200)
    request = ImportanceRequest(
        names=("optimizer", "rate", "noise"),
        columns=(
            tuple(np.where(first, 0.25, 0.75)),
            tuple(float(r) if used else None for r, used in zip(rate, first, strict=True)),
            tuple(noise),
        ),
        scores=tuple(np.where(first, 0.5 + rate, 0.2)),
        choices={"optimizer": ("adam", "sgd")},
    )
    shares = {entry.name: entry.alone for entry in importance(request).importances}
    assert shares["rate"] > 5 * shares["noise"]
    assert shares["optimizer"] > shares["noise"]


def test_with_several_objectives_what_leads_to_the_front_matters() -> None:
    rng = np.random.default_rng(2)
    columns = rng.random((3, 300))
    size = FurtherObjective(scores=tuple(columns[1]), direction="min")
    request = ImportanceRequest(
        names=("x", "y", "noise"),
        columns=tuple(map(tuple, columns)),
        scores=tuple(columns[0]),
        further=(size,),
    )
    assert importance(request).importances[-1].name == "noise"
    alone = {e.name: e.alone for e in importance(request.model_copy(update={"further": ()})).importances}
    both = {e.name: e.alone for e in importance(request).importances}
    assert both["y"] > 3 * alone["y"]


def test_the_few_trials_with_another_score_than_most_are_the_best() -> None:
    """Optuna would count all trials among the best, and give every hyperparameter the same share."""
    rng = np.random.default_rng(4)
    x, noise = rng.random((2, 60))
    best = np.zeros(60, bool)
    best[np.argsort(x)[-4:]] = True
    request = ImportanceRequest(
        names=("noise", "x"), columns=(tuple(noise), tuple(x)), scores=tuple(1.0 * best)
    )
    assert [entry.name for entry in importance(request).importances] == ["x", "noise"]


def test_a_hyperparameter_that_no_good_trial_has_is_not_important() -> None:
    column = tuple(n / 20 if n < 9 else None for n in range(20))
    scores = tuple(float(n) for n in range(20))
    (entry,) = importance(ImportanceRequest(names=("x",), columns=(column,), scores=scores)).importances
    assert entry.alone == 0


def test_of_many_trials_a_sample_is_enough() -> None:
    column = tuple(np.linspace(0, 1, MAX_TRIALS + 1))
    answer = importance(ImportanceRequest(names=("x",), columns=(column,), scores=column))
    assert answer.used == MAX_TRIALS


def test_equal_scores_are_rejected_with_a_message() -> None:
    column = tuple(np.linspace(0, 1, 10))
    with pytest.raises(ValueError, match="the same score"):
        importance(ImportanceRequest(names=("x",), columns=(column,), scores=(1.0,) * 10))


def influence_of(column: Any, scores: Any, **fields: Any) -> Influence:
    request = ImportanceRequest(names=("x",), columns=(tuple(column),), scores=tuple(scores), **fields)
    (entry,) = importance(request).importances
    return entry.influence


def test_values_that_tend_to_score_better_are_named_with_their_correlation() -> None:
    rng = np.random.default_rng(1)
    x = rng.random(60)
    rising = influence_of(x, x + rng.normal(0, 0.4, 60))
    assert rising.verdict == "higher"
    assert rising.low is not None and rising.high is not None and rising.correlation is not None
    assert 0 < rising.low < rising.correlation < rising.high < 1
    assert influence_of(x, -x).verdict == "lower"
    assert influence_of(x, x, direction="min").verdict == "lower", "small scores are better"


def test_a_peak_in_the_middle_and_noise_have_no_tendency() -> None:
    rng = np.random.default_rng(2)
    x = np.linspace(0, 1, 60)
    assert influence_of(x, -((x - 0.5) ** 2)).verdict == "unclear"
    verdicts = [of_number(rng.random(20), rng.random(20)).verdict for _ in range(400)]
    assert 0.9 < verdicts.count("unclear") / 400 < 0.99, "one in twenty is expected to be wrong"


def test_a_hyperparameter_with_few_active_trials_has_no_tendency() -> None:
    scores = tuple(float(n) for n in range(20))
    column = tuple(n / 20 if n < 9 else None for n in range(20))
    influence = influence_of(column, scores)
    assert (influence.verdict, influence.trials, influence.correlation) == ("unclear", 9, None)


def test_the_choices_that_tend_to_score_best_are_named_together() -> None:
    rng = np.random.default_rng(3)
    index = np.arange(60) % 3
    scores = np.where(index == 1, 0.5, 0.9) + rng.normal(0, 0.02, 60)
    choices = {"x": ("adam", "sgd", "rmsprop")}
    both = influence_of((index + 0.5) / 3, scores, choices=choices)
    assert (both.verdict, both.best, both.trials) == ("choice", ("adam", "rmsprop"), 60)
    worst = influence_of((index + 0.5) / 3, scores, choices=choices, direction="min")
    assert worst.best == ("sgd",)
    assert influence_of((index + 0.5) / 3, rng.random(60), choices=choices).verdict == "unclear"


def test_a_choice_with_few_trials_is_not_compared() -> None:
    index = np.array([0] * 16 + [1] * 4)
    assert influence_of((index + 0.5) / 2, 1.0 * index, choices={"x": (False, True)}).verdict == "unclear"


def test_noise_is_not_beyond_chance_and_what_decides_is() -> None:
    rng = np.random.default_rng(5)
    columns = rng.random((3, 40))
    request = ImportanceRequest(
        names=("x", "y", "z"), columns=tuple(map(tuple, columns)), scores=tuple(rng.random(40))
    )
    noise = [entry.is_beyond_chance for entry in importance(request).importances]
    assert noise == [False] * 3, "although their shares add up to 1"
    decided = importance(request.model_copy(update={"scores": tuple(columns[1])})).importances
    assert [entry.name for entry in decided if entry.is_beyond_chance] == ["y"]
