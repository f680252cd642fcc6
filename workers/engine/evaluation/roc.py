"""Computes a binary classifier's ROC curve and the area under it, with its interval."""

import math
from typing import NamedTuple

import numpy as np

from jobs.messages.reports.base import MetricValue
from workers.engine.arrays import Array, Bools, Floats
from workers.engine.evaluation.intervals import RowIndices, bootstrap, metric_entry
from workers.engine.evaluation.weighting import Weights, of_rows

CURVE_POINTS = 200
"""Maximum number of points of a ROC curve, enough for a chart."""


def roc_auc(positive: Bools, score: Floats, weights: Weights = None) -> float:
    """Return the area under the ROC curve, from ranks; NaN if a class is missing or a score is not finite.

    Source: Mann and Whitney 1947, On a Test of Whether One of Two Random Variables Is Stochastically Larger
    than the Other.

    Args:
        positive: whether each row has the positive class, (rows,).
        score: larger for rows that are more probably positive, (rows,).
        weights: row weights, (rows,); None if each counts once.
    """
    if not score.size or not np.isfinite(score).all():
        return math.nan
    return _Sorted(positive, score).auc(np.ones(score.size) if weights is None else weights)


class RocCurve(NamedTuple):
    """(False positive rate, true positive rate) pairs, and each one's threshold but the first's."""

    points: tuple[tuple[float, float], ...] = ()
    thresholds: tuple[float, ...] = ()


def roc_curve(positive: Bools, score: Floats, weights: Weights = None) -> RocCurve:
    """Return at most `CURVE_POINTS` points for a chart, from the highest threshold to the lowest.

    Args:
        positive: whether each row has the positive class, (rows,); both classes must occur.
        score: larger for rows that are more probably positive, (rows,).
        weights: row weights, (rows,), above 0 in both classes; None if each counts once.
    """
    order = np.argsort(-score, kind="stable")
    # A threshold cannot separate rows of equal score, so they give one point.
    last_of_tie = np.append(np.flatnonzero(np.diff(score[order])), score.size - 1)
    ones, zeros = (mask if weights is None else mask * weights for mask in (positive, ~positive))
    tpr = np.cumsum(ones[order])[last_of_tie] / ones.sum()
    fpr = np.cumsum(zeros[order])[last_of_tie] / zeros.sum()
    keep = np.unique(np.linspace(0, fpr.size - 1, min(fpr.size, CURVE_POINTS)).astype(int))
    points = ((0.0, 0.0), *((float(fpr[i]), float(tpr[i])) for i in keep))
    return RocCurve(points, tuple(float(score[order][last_of_tie[i]]) for i in keep))


def auc_entry(positive: Bools, score: Floats, seed: int, weights: Weights = None) -> MetricValue:
    """Return the area under the ROC curve with its bootstrap interval. For the arguments see `roc_auc`."""
    return metric_entry(
        roc_auc(positive, score, weights),
        len(score),
        _auc_interval(positive, score, seed, weights),
        "bootstrap",
    )


class _Sorted:
    """Rows ordered by their scores, for which the area under the ROC curve is computed several times."""

    def __init__(self, positive: Bools, score: Floats) -> None:
        self.order = np.argsort(score)
        self._ones = positive[self.order]
        self._first_of_tie = np.flatnonzero(np.append(True, np.diff(score[self.order]) > 0))

    def auc(self, counts: Array) -> float:
        """Return the area under the curve if each row counts so often, (rows,); NaN if a class is missing."""
        times = counts[self.order]
        above = np.add.reduceat(np.where(self._ones, times, 0), self._first_of_tie)
        below = np.add.reduceat(np.where(self._ones, 0, times), self._first_of_tie)
        pairs = above.sum() * below.sum()
        # Each positive row wins against the negative rows below it, and ties count half.
        wins = (above * (np.cumsum(below) - below / 2)).sum()
        return float(wins / pairs) if pairs else math.nan


def _auc_interval(positive: Bools, score: Floats, seed: int, weights: Weights) -> tuple[float, float]:
    """Return the bootstrap interval for the area under the ROC curve; NaN if a score is not finite."""
    if not np.isfinite(score).all():
        return math.nan, math.nan
    # Sorted once: a resample only changes how often each row counts, not the order of the scores.
    rows = _Sorted(positive, score)

    def auc_of(drawn: RowIndices) -> float:
        return rows.auc(np.bincount(drawn, of_rows(weights, drawn), minlength=len(score)))

    return bootstrap(auc_of, len(score), seed)
