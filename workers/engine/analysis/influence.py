"""Finds the score's tendency over one hyperparameter's values.

The other hyperparameters vary too, so this describes the trials; it does not prove a cause.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kruskal, mannwhitneyu, rankdata

from jobs.messages.analysis import FEWEST_TRIALS, Influence
from jobs.spec.space.hyperparameters import Value

MIN_TRIALS_PER_CHOICE = 5
"""Values with fewer trials are not compared."""
SIGNIFICANCE = 0.05
Z95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

Floats = NDArray[np.float64]


def of_number(values: Floats, goodness: Floats) -> Influence:
    """Return whether higher or lower values of a number tend to score better.

    The interval for Spearman's rank correlation comes from D. G. Bonett and T. A. Wright, "Sample size
    requirements for estimating Pearson, Kendall and Spearman correlations", Psychometrika 65, 2000.

    Args:
        values: (trials,), NaN where it was inactive.
        goodness: (trials,), greater is better.
    """
    is_active = ~np.isnan(values)
    values, goodness = values[is_active], goodness[is_active]
    count = len(values)
    if count < FEWEST_TRIALS or np.ptp(values) == 0 or np.ptp(goodness) == 0:
        return Influence(verdict="unclear", trials=count)
    correlation = float(np.corrcoef(rankdata(values), rankdata(goodness))[0, 1])
    centre = math.atanh(min(max(correlation, -0.999999), 0.999999))
    margin = Z95 * math.sqrt((1 + correlation**2 / 2) / (count - 3))
    low, high = math.tanh(centre - margin), math.tanh(centre + margin)
    return Influence(
        verdict="higher" if low > 0 else "lower" if high < 0 else "unclear",
        correlation=round(correlation, 4),
        low=round(low, 4),
        high=round(high, 4),
        trials=count,
    )


def of_choice(indices: Floats, goodness: Floats, choices: tuple[Value, ...]) -> Influence:
    """Return which of several values tend to score best.

    If the values differ at all (W. H. Kruskal, W. A. Wallis, 1952), these are the one with the best mean rank
    and those that cannot be distinguished from it (H. B. Mann, D. R. Whitney, 1947).

    Args:
        indices: (trials,), each trial's value by its index; NaN where it was inactive.
        goodness: (trials,), greater is better.
        choices: the values.
    """
    scores = {
        value: group
        for index, value in enumerate(choices)
        if len(group := goodness[indices == index]) >= MIN_TRIALS_PER_CHOICE
    }
    count = int((~np.isnan(indices)).sum())
    unclear = Influence(verdict="unclear", trials=count)
    if len(scores) < 2 or np.ptp(np.concatenate(list(scores.values()))) == 0:
        return unclear
    if kruskal(*scores.values()).pvalue >= SIGNIFICANCE:
        return unclear
    best = _best_by_rank(scores)
    good = tuple(value for value in scores if value == best or not _differ(scores[best], scores[value]))
    return Influence(verdict="choice", best=good, trials=count) if len(good) < len(scores) else unclear


def _best_by_rank(scores: dict[Value, Floats]) -> Value:
    ranks = rankdata(np.concatenate(list(scores.values())))
    ends = np.cumsum([len(group) for group in scores.values()])
    means = dict(zip(scores, (part.mean() for part in np.split(ranks, ends[:-1])), strict=True))
    return max(means, key=lambda value: means[value])


def _differ(one: Floats, other: Floats) -> bool:
    return bool(mannwhitneyu(one, other).pvalue < SIGNIFICANCE)
