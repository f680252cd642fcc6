"""Measures how different ensemble members' errors are, from their stored predictions."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jobs.messages.reports.ensemble import Diversity, MemberPair
from jobs.spec.sections.data import Task
from workers.engine.arrays import Array, Bools
from workers.engine.evaluation.classification import predicted_classes
from workers.engine.evaluation.regression import columns


class PairDiversity(NamedTuple):
    """How different two members' predictions are; None where it is undefined."""

    disagreement: float | None
    error_correlation: float | None
    q_statistic: float | None


def diversity(
    task: Task, y_true: npt.ArrayLike, members: Sequence[npt.ArrayLike], names: Sequence[str]
) -> Diversity:
    """Compare each pair of members on the same rows. An ensemble gains from different errors.

    Args:
        task: the prediction task.
        y_true: true values, (rows, …).
        members: each member's predictions, (rows, …).
        names: the member names.

    Returns:
        For each classifier pair the share of rows with different predictions, the error correlation
        and Yule's Q; for regressors the mean difference in target standard deviations and the
        residual correlation. Null where undefined, for example if a member makes no error.
    """
    compare = _compare_regressors if task == "regression" else _compare_classifiers
    indices = list(combinations(range(len(members)), 2))
    compared = [compare(task, y_true, members[i], members[j]) for i, j in indices]
    pairs = tuple(
        MemberPair(a=names[i], b=names[j], **pair._asdict())
        for (i, j), pair in zip(indices, compared, strict=True)
    )
    shares = [pair.disagreement for pair in compared if pair.disagreement is not None]
    return Diversity(pairs=pairs, mean_disagreement=float(np.mean(shares)) if shares else None)


def q_statistic(a_right: Bools, b_right: Bools) -> float | None:
    """Return Yule's Q for two members' predictions.

    1: correct on the same rows; 0: independent; negative: correct on different rows. Source: Kuncheva and
    Whitaker 2003, Measures of Diversity in Classifier Ensembles.

    Args:
        a_right: whether the first member is correct, (rows,).
        b_right: whether the second member is correct, (rows,).

    Returns:
        Q, or None if both products in its denominator are 0.
    """
    both, neither = float((a_right & b_right).sum()), float((~a_right & ~b_right).sum())
    only_a, only_b = float((a_right & ~b_right).sum()), float((~a_right & b_right).sum())
    total = both * neither + only_a * only_b
    return (both * neither - only_a * only_b) / total if total else None


def correlation(a: Array, b: Array) -> float | None:
    """Return Pearson's correlation between two arrays; None if one is constant or not finite."""
    a, b = a.reshape(-1).astype(np.float64), b.reshape(-1).astype(np.float64)
    spread = a.std() * b.std()
    if not np.isfinite(spread) or spread == 0:
        return None
    return float(np.mean((a - a.mean()) * (b - b.mean())) / spread)


def _predicted(task: Task, y_pred: npt.ArrayLike) -> Array:
    return np.asarray(y_pred) > 0.5 if task == "multilabel" else predicted_classes(y_pred)


def _compare_classifiers(
    task: Task, y_true: npt.ArrayLike, first: npt.ArrayLike, second: npt.ArrayLike
) -> PairDiversity:
    a, b = _predicted(task, first), _predicted(task, second)
    truth = np.asarray(y_true).reshape(a.shape)
    return PairDiversity(
        disagreement=float(np.mean(a != b)),
        error_correlation=correlation(a != truth, b != truth),
        q_statistic=q_statistic(a == truth, b == truth),
    )


def _compare_regressors(
    task: Task,  # noqa: ARG001  both comparisons have one signature
    y_true: npt.ArrayLike,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
) -> PairDiversity:
    truth, a, b = columns(y_true), columns(first), columns(second)
    scale = truth.std(axis=0)
    distance = np.abs(a - b) / np.where(scale > 0, scale, 1.0)
    return PairDiversity(
        disagreement=float(distance.mean()) if np.isfinite(distance).all() else None,
        error_correlation=correlation(truth - a, truth - b),
        q_statistic=None,
    )
