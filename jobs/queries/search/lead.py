"""Judges whether one configuration's lead over another exceeds the spread of repeated trainings.

Two methods give a 95 % confidence interval for the difference between the means:

- Each training of both had another seed and the same rows: Welch's t-interval for two independent samples
  (B. L. Welch, Biometrika 34, 1947). A bootstrap with the usual two to five trainings would be far too
  narrow.
- Both were cross-validated on the same folds: the paired differences' t-interval, with the variance
  corrected for folds that share training rows (C. Nadeau, Y. Bengio, Machine Learning 52, 2003).
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, sqrt
from statistics import fmean, variance
from typing import Literal, NamedTuple

CONFIDENCE = 0.95
MOST_TRAININGS = 100
"""The most trainings that a trial may have (`SearchSpec.executions_per_trial`)."""
MIN_SPREAD = 1e-12
"""A smaller standard deviation, relative to the scores, is rounding."""

Verdict = Literal["clear", "unclear", "unknown"]
Method = Literal["welch", "paired_folds"]
Fold = tuple[int, int]


class Lead(NamedTuple):
    """How far the best configuration leads, in the score's unit; positive means better.

    Attributes:
        value: the difference between the means.
        low: the interval's lower end; None if it is unknown.
        high: the upper end.
        verdict: `clear` if the interval excludes zero, `unclear` if it does not, `unknown` if there is none.
        method: how the interval was computed, or would be.
        trainings: how many trainings were compared, for the best and for the other configuration.
        needed: how many trainings each needs so that such a lead is clear; None if it is unknown, or if more
            than `MOST_TRAININGS` would be needed.
    """

    value: float
    low: float | None
    high: float | None
    verdict: Verdict
    method: Method
    trainings: tuple[int, int]
    needed: int | None


def lead_of_samples(best: Sequence[float], other: Sequence[float], *, maximize: bool) -> Lead:
    """Return the lead between trainings that are independent of each other.

    Args:
        best: the scores of the best configuration's trainings, at least one.
        other: the other configuration's scores.
        maximize: whether a greater score is better.
    """
    sign = 1.0 if maximize else -1.0
    value = sign * (fmean(best) - fmean(other))
    counts = (len(best), len(other))
    spread = [_sample_variance(sample) for sample in (best, other)]
    if None in spread or not any(spread):
        return Lead(value, None, None, "unknown", "welch", counts, None)
    shares = [(sample_variance or 0.0) / count for sample_variance, count in zip(spread, counts, strict=True)]
    error = sqrt(sum(shares))
    freedom = sum(shares) ** 2 / sum(
        share**2 / (count - 1) for share, count in zip(shares, counts, strict=True)
    )
    total = sum(sample_variance or 0.0 for sample_variance in spread)
    needed = _fewest_trainings(value, lambda n: (sqrt(total / n), 2.0 * n - 2.0))
    return _judge_lead(value, error, freedom, "welch", counts, needed)


def lead_of_folds(
    best: Mapping[Fold, float], other: Mapping[Fold, float], *, folds: int, maximize: bool
) -> Lead:
    """Return the lead between two cross-validations, from the folds that both have.

    Args:
        best: (repeat, fold) → the best configuration's score.
        other: the same for the other configuration.
        folds: how many folds each repeat has.
        maximize: whether a greater score is better.

    Raises:
        ValueError: they have no fold in common.
    """
    shared = sorted(best.keys() & other.keys())
    if not shared:
        raise ValueError("the two configurations were evaluated on different folds")
    sign = 1.0 if maximize else -1.0
    differences = [sign * (best[fold] - other[fold]) for fold in shared]
    value, count = fmean(differences), len(shared)
    spread = _sample_variance(differences, size=max(abs(best[fold]) for fold in shared))
    counts = (count, count)
    if not spread:
        return Lead(value, None, None, "unknown", "paired_folds", counts, None)
    overlap = 1 / (folds - 1)  # rows of the held-out fold per training row
    needed = _fewest_trainings(value, lambda n: (sqrt(spread * (1 / n + overlap)), n - 1.0))
    error = sqrt(spread * (1 / count + overlap))
    return _judge_lead(value, error, count - 1.0, "paired_folds", counts, needed)


def _sample_variance(sample: Sequence[float], *, size: float = 0.0) -> float | None:
    """Return the sample variance. None for a single value, zero for a spread that is only rounding."""
    if len(sample) < 2:
        return None
    sample_variance = variance(sample)
    size = max(size, *(abs(value) for value in sample))
    return sample_variance if sqrt(sample_variance) > MIN_SPREAD * size else 0.0


def _judge_lead(
    value: float, error: float, freedom: float, method: Method, counts: tuple[int, int], needed: int | None
) -> Lead:
    margin = _student_t_quantile(freedom) * error
    verdict: Verdict = "clear" if value - margin > 0 else "unclear"
    return Lead(value, value - margin, value + margin, verdict, method, counts, needed)


def _fewest_trainings(value: float, error_of: Callable[[int], tuple[float, float]]) -> int | None:
    """Return the smallest number of trainings for which the interval would exclude zero."""
    if value <= 0:
        return None
    for count in range(2, MOST_TRAININGS + 1):
        error, freedom = error_of(count)
        if _student_t_quantile(freedom) * error < value:
            return count
    return None


def _student_t_quantile(freedom: float) -> float:
    """Return the two-sided quantile for Student's t distribution."""
    from scipy.special import stdtrit  # importing takes a third of a second, and few requests need it

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) if freedom > 0 else inf
