"""Weights for pooling members, found from stored validation predictions: no model, no Keras."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from jobs.contracts.data import Task
from workers.engine.evaluation.classification import TINY, probabilities
from workers.engine.evaluation.regression import columns

Floats = npt.NDArray[np.float64]

FAVOUR = 3.0
"""Logit by which a start favours one member: about 20 times the weight of each other."""

PRUNED = 1e-3
"""Members below this weight are left out: they cost time in serving and change nothing."""

FOLDS = 5


@dataclass(frozen=True)
class Fit:
    """Weights that sum to 1, the loss they reach on the rows they were fitted on, and the effort."""

    weights: Floats
    loss: float
    evaluations: int


def evidence(task: Task, y_true: npt.ArrayLike, members: Sequence[npt.ArrayLike]) -> Floats:
    """Reduce each member's predictions to what a pooled loss depends on, linear in the weights.

    Returns:
        Shape (members, rows, k). For classes, the probability given to the true class (k = 1, or
        one a label); for regression, the residual in units of the target's standard deviation
        (k = outputs). The evidence of a weighted mean is the weighted mean of the evidence.
    """
    if task == "regression":
        truth = columns(y_true)
        scale = truth.std(axis=0)
        return np.stack([(truth - columns(m)) / np.where(scale > 0, scale, 1.0) for m in members])
    if task == "multilabel":
        yes = np.asarray(y_true) > 0.5
        return np.stack(
            [np.where(yes, np.asarray(m, np.float64), 1 - np.asarray(m, np.float64)) for m in members]
        )
    truth_class = np.asarray(y_true).reshape(-1).astype(np.int64)
    rows = np.arange(len(truth_class))
    return np.stack([probabilities(m)[rows, truth_class][:, None] for m in members])


def pooled_loss(task: Task, found: Floats, weights: Floats) -> float:
    """Return the log loss of a weighted mean; for regression its mean squared error, standardized."""
    pooled = np.tensordot(weights, found, axes=1)
    if task == "regression":
        return float(np.mean(pooled**2))
    return float(-np.mean(np.log(np.clip(pooled, TINY, 1.0))))


def pool(members: Sequence[npt.ArrayLike], weights: Floats) -> Floats:
    """Return the weighted mean of predictions of one shape."""
    return np.tensordot(weights, np.stack([np.asarray(m, np.float64) for m in members]), axes=1)


def fit_weights(task: Task, found: Floats) -> Fit:
    """Find weights by Nelder–Mead over softmax logits (Nelder and Mead 1965), from several starts.

    It starts from equal weights and once in favour of each member. The loss, never accuracy, is
    minimized: accuracy is flat almost everywhere and the method would not move.

    Args:
        task: what is predicted.
        found: see `evidence`.
    """
    count = len(found)
    starts = np.vstack([np.zeros(count), FAVOUR * np.eye(count)])
    runs = [_descend(task, found, start[:-1] - start[-1]) for start in starts]
    best = min(runs, key=lambda run: run.fun)
    weights = _softmax(best.x)
    kept = np.where(weights < PRUNED, 0.0, weights)
    weights = kept / kept.sum()
    return Fit(weights, pooled_loss(task, found, weights), sum(int(run.nfev) for run in runs))


def equal_weights(task: Task, found: Floats) -> Fit:
    """Return the plain mean as a fit."""
    weights = np.full(len(found), 1 / len(found))
    return Fit(weights, pooled_loss(task, found, weights), 1)


def held_out_loss(task: Task, found: Floats, seed: int) -> float:
    """Return the loss of fitted weights on rows they were not fitted on, by 5-fold cross-validation.

    The gap to the fitted loss shows how much the weights merely learn the validation rows.
    """
    rows = np.random.default_rng(seed).permutation(found.shape[1])
    folds = np.array_split(rows, min(FOLDS, len(rows)))
    total = 0.0
    for fold in folds:
        rest = np.setdiff1d(rows, fold)
        weights = fit_weights(task, found[:, rest]).weights
        total += pooled_loss(task, found[:, fold], weights) * len(fold)
    return total / len(rows)


def leave_one_out(task: Task, found: Floats, weights: Floats) -> Floats:
    """Return by how much the loss grows without each member, the other weights kept in proportion.

    Positive: the member helps. A member that holds all the weight leaves equal shares to the others.
    """
    full = pooled_loss(task, found, weights)
    gains = []
    for left_out in range(len(weights)):
        rest = np.where(np.arange(len(weights)) == left_out, 0.0, weights)
        if rest.sum() <= 0:
            rest = np.where(np.arange(len(weights)) == left_out, 0.0, 1.0)
        gains.append(pooled_loss(task, found, rest / rest.sum()) - full)
    return np.array(gains)


def _descend(task: Task, found: Floats, start: Floats) -> Any:
    """Run Nelder–Mead from `start`: one logit a member but the last, whose logit is 0."""
    simplex = np.vstack([start, start + np.eye(len(start))])  # scipy's own is too small at zero
    options = {"initial_simplex": simplex, "maxfev": 400 * len(found), "xatol": 1e-3, "fatol": 1e-7}
    return minimize(
        lambda x: pooled_loss(task, found, _softmax(x)), start, method="Nelder-Mead", options=options
    )


def _softmax(free: Floats) -> Floats:
    logits = np.append(free, 0.0)
    powers = np.exp(logits - logits.max())
    weights: Floats = powers / powers.sum()
    return weights
