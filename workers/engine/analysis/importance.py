"""Estimates each hyperparameter's importance by PED-ANOVA, as Optuna computes it."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, create_trial

from jobs.messages.analysis import Importance, ImportanceAnswer, ImportanceRequest, Influence
from workers.engine.analysis import influence

MAX_TRIALS = 2000
"""More trials hardly change the result and take too long for an interactive chart."""
TOP_SHARE, MIN_TOP = 0.1, 5
"""The best trials are a tenth of all, but at least five: Optuna's estimate of fewer is unstable."""
SHUFFLES = 39
"""Comparisons with as many trials drawn at random, to distinguish a difference from chance."""

Floats = NDArray[np.float64]
Rank = Callable[[FrozenTrial], float]


def importance(request: ImportanceRequest) -> ImportanceAnswer:
    """Compare the best trials' values with all trials' values, for each hyperparameter.

    PED-ANOVA: S. Watanabe, A. Bansal, F. Hutter, "PED-ANOVA: Efficiently Quantifying Hyperparameter
    Importance in Arbitrary Subspaces", IJCAI 2023. Trials in which a hyperparameter is inactive form a region
    of their own (conditional PED-ANOVA, KDD 2026). With several objectives, the best trials are those nearest
    to the Pareto front.

    Args:
        request: values in the unit cube, (hyperparameters, trials), and scores, (trials,), or one row of
            scores for each of several objectives.

    Returns:
        Importances in descending order. Their sum is 1, or 0 if the best trials differ from the others in no
        hyperparameter that they have. `chance` for each is a permutation test's p-value: trials drawn at
        random take the place of the best ones.

    Raises:
        ValueError: columns and scores differ in length, or every score is the same.
    """
    columns, scores = _sample(request)
    if all(np.ptp(row) == 0 for row in scores):
        raise ValueError("all trials have the same score, so importance is undefined")
    study = _study(request, columns, scores)
    top_share = _count_top(request, scores) / len(columns)
    divergences = _divergences(study, top_share)
    chances = _chances(study, top_share, divergences, request.seed)
    # Not by Optuna, which gives equal shares if all are 0.
    total = sum(divergences.values()) or 1.0
    entries = (
        Importance(
            name=name,
            alone=round(divergences.get(name, 0.0) / total, 5),
            chance=chances.get(name, 1.0),
            influence=_influence(request, name, columns[:, index], scores[0]),
        )
        for index, name in enumerate(request.names)
    )
    ranked = sorted(entries, key=lambda entry: (-entry.alone, entry.name))
    return ImportanceAnswer(used=len(columns), importances=tuple(ranked))


def _study(request: ImportanceRequest, columns: Floats, scores: Floats) -> Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    directions = [request.direction, *(objective.direction for objective in request.further)]
    words = {"max": StudyDirection.MAXIMIZE, "min": StudyDirection.MINIMIZE}
    study = optuna.create_study(directions=[words[direction] for direction in directions])
    study.add_trials(_trials(request, columns, scores))
    return study


def _divergences(study: Study, top_share: float, rank: Rank | None = None) -> dict[str, float]:
    """Return how much the best trials' values differ from all trials' values, for each hyperparameter."""
    with warnings.catch_warnings():
        # About few trials of a region, which it leaves out, and that low ranks are the best.
        warnings.simplefilter("ignore")
        return PedAnovaImportanceEvaluator(target_quantile=top_share).evaluate(study, target=rank)


def _chances(study: Study, top_share: float, divergences: dict[str, float], seed: int) -> dict[str, float]:
    """Return how likely at least such a divergence is if the score does not depend on the hyperparameter."""
    rng = np.random.default_rng(seed)
    count = len(study.get_trials(deepcopy=False))
    as_great = dict.fromkeys(divergences, 1)
    for _ in range(SHUFFLES):
        by_chance = _divergences(study, top_share, _random_rank(rng.permutation(count)))
        for name, divergence in divergences.items():
            as_great[name] += by_chance[name] >= divergence
    return {name: count / (SHUFFLES + 1) for name, count in as_great.items()}


def _random_rank(ranks: NDArray[np.int64]) -> Rank:
    return lambda trial: float(ranks[trial.number])


def _count_top(request: ImportanceRequest, scores: Floats) -> int:
    """Return how many trials count as the best, so that not all do."""
    count = scores.shape[1]
    top = max(math.ceil(TOP_SHARE * count), MIN_TOP)
    if request.further:
        return top
    costs = np.sort(-scores[0] if request.direction == "max" else scores[0])
    # Optuna adds all trials with the score of the last one. If these are the rest, only better trials count.
    is_last = costs[-1] == costs[top - 1]
    return int((costs < costs[top - 1]).sum() if is_last else (costs <= costs[top - 1]).sum())


def _trials(request: ImportanceRequest, columns: Floats, scores: Floats) -> list[FrozenTrial]:
    distributions = [_distribution(request, name) for name in request.names]
    trials = []
    for row, values in zip(columns, scores.T, strict=True):
        active = [
            (name, distribution, float(value))
            for name, distribution, value in zip(request.names, distributions, row, strict=True)
            if not math.isnan(value)
        ]
        trials.append(
            create_trial(
                params={name: _value(distribution, value) for name, distribution, value in active},
                distributions={name: distribution for name, distribution, _ in active},
                values=[float(value) for value in values],
            )
        )
    return trials


def _distribution(request: ImportanceRequest, name: str) -> BaseDistribution:
    choices = request.choices.get(name)
    # By index: equal choices of different types, such as 1 and True, are one to Optuna.
    return FloatDistribution(0, 1) if choices is None else CategoricalDistribution(range(len(choices)))


def _value(distribution: BaseDistribution, value: float) -> float:
    if isinstance(distribution, CategoricalDistribution):
        return int(value * len(distribution.choices))
    return value


def _influence(request: ImportanceRequest, name: str, column: Floats, scores: Floats) -> Influence:
    goodness = scores if request.direction == "max" else -scores
    choices = request.choices.get(name)
    if choices is None:
        return influence.of_number(column, goodness)
    return influence.of_choice(np.floor(column * len(choices)), goodness, choices)


def _sample(request: ImportanceRequest) -> tuple[Floats, Floats]:
    """Return values (trials, hyperparameters) and scores (objectives, trials) of at most `MAX_TRIALS` trials.

    Inactive values are NaN.
    """
    scores = np.array([request.scores, *(objective.scores for objective in request.further)])
    values = np.array(request.columns, dtype=float).T
    if values.shape != (scores.shape[1], len(request.names)):
        raise ValueError(
            f"{len(request.names)} names, {scores.shape[1]} scores, but columns of {values.shape}"
        )
    if len(values) > MAX_TRIALS:
        chosen = np.random.default_rng(request.seed).choice(len(values), MAX_TRIALS, replace=False)
        return values[chosen], scores[:, chosen]
    return values, scores
