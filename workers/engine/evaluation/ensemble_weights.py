"""Fits ensemble members' weights to their stored validation predictions. Needs no model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from jobs.spec.sections.data import Task
from workers.engine.arrays import Floats
from workers.engine.evaluation.classification import EPSILON, probabilities
from workers.engine.evaluation.regression import columns
from workers.engine.evaluation.weighting import Weights, mean, of_rows

START_LOGIT = 3.0
"""Logit of the favoured member in a start: about 20 times the weight of each other member."""

MIN_WEIGHT = 1e-3
"""Members below this weight are left out: they cost time in serving and change nothing."""

FOLDS = 5
"""Number of folds of `held_out_losses`, if there are as many rows."""


@dataclass(frozen=True)
class FittedWeights:
    """The members' weights.

    Attributes:
        weights: (members,), with sum 1.
        loss: on the rows they were fitted on.
        evaluations: how often the loss was evaluated.
    """

    weights: Floats
    loss: float
    evaluations: int


def loss_terms(task: Task, y_true: npt.ArrayLike, members: Sequence[npt.ArrayLike]) -> Floats:
    """Reduce each member's predictions to the terms on which a weighted mean's loss depends.

    The terms are linear in the weights: a weighted mean's terms are the terms' weighted mean.

    Args:
        task: the prediction task.
        y_true: true values, (rows, …).
        members: each member's predictions, (rows, …).

    Returns:
        (members, rows, k). For classes, the true class's probability (k = 1, or the label count);
        for regression, the residual in target standard deviations (k = outputs).
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


def pooled_loss(task: Task, terms: Floats, weights: Floats, rows: Weights = None) -> float:
    """Return a weighted mean's loss: log loss, or the standardized mean squared error for regression.

    Args:
        task: the prediction task.
        terms: see `loss_terms`.
        weights: the members' weights, (members,).
        rows: row weights, (rows,); None if each counts once.
    """
    return mean(pooled_losses(task, terms, weights), rows)


def pooled_losses(task: Task, terms: Floats, weights: Floats) -> Floats:
    """Return a weighted mean's loss for each row, (rows,). See `pooled_loss`."""
    pooled = np.tensordot(weights, terms, axes=1)
    losses: Floats = pooled**2 if task == "regression" else -np.log(np.clip(pooled, EPSILON, 1.0))
    return losses.mean(axis=-1)


def weighted_mean(members: Sequence[npt.ArrayLike], weights: Floats) -> Floats:
    """Return the members' weighted mean prediction; the predictions have the same shape."""
    return np.tensordot(weights, np.stack([np.asarray(m, np.float64) for m in members]), axes=1)


def fit_weights(task: Task, terms: Floats, rows: Weights = None) -> FittedWeights:
    """Minimize the loss with the Nelder–Mead method over softmax logits (Nelder and Mead 1965).

    The loss is minimized rather than the accuracy, which is constant almost everywhere, so the method would
    not move.

    Args:
        task: the prediction task.
        terms: see `loss_terms`.
        rows: row weights, (rows,); None if each counts once.
    """
    count = len(terms)
    # The method finds a local minimum: it starts from equal weights, and once in favour of each member.
    starts = np.vstack([np.zeros(count), START_LOGIT * np.eye(count)])
    runs = [_descend(task, terms, start[:-1] - start[-1], rows) for start in starts]
    best = min(runs, key=lambda run: run.fun)
    weights = _softmax(best.x)
    clipped = np.where(weights < MIN_WEIGHT, 0.0, weights)
    weights = clipped / clipped.sum()
    loss = pooled_loss(task, terms, weights, rows)
    return FittedWeights(weights, loss, sum(int(run.nfev) for run in runs))


def equal_weights(task: Task, terms: Floats, rows: Weights = None) -> FittedWeights:
    """Return equal weights and their loss; for the arguments see `fit_weights`."""
    weights = np.full(len(terms), 1 / len(terms))
    return FittedWeights(weights, pooled_loss(task, terms, weights, rows), 1)


def held_out_losses(task: Task, terms: Floats, seed: int, weights_of_rows: Weights = None) -> Floats:
    """Return each row's loss under weights that were not fitted on it, by 5-fold cross-validation, (rows,).

    The gap between their mean and the fitted loss shows how much the weights overfit the validation rows.

    Args:
        task: the prediction task.
        terms: see `loss_terms`.
        seed: for the folds.
        weights_of_rows: (rows,); None if each counts once.
    """
    rows = np.random.default_rng(seed).permutation(terms.shape[1])
    folds = np.array_split(rows, min(FOLDS, len(rows)))
    losses = np.empty(len(rows))
    for fold in folds:
        rest = np.setdiff1d(rows, fold)
        rest_weights = of_rows(weights_of_rows, rest)
        # Rows that have no weight choose nothing.
        is_known = rest_weights is None or rest_weights.any()
        fit = (
            fit_weights(task, terms[:, rest], rest_weights)
            if is_known
            else equal_weights(task, terms[:, rest])
        )
        weights = fit.weights
        losses[fold] = pooled_losses(task, terms[:, fold], weights)
    return losses


def leave_one_out(task: Task, terms: Floats, weights: Floats, rows: Weights = None) -> Floats:
    """Return by how much the loss increases without each member, (members,). Positive: the member helps.

    The other weights keep their proportions. Without a member that has all the weight, the others get equal
    weights.

    Args:
        task: the prediction task.
        terms: see `loss_terms`.
        weights: the members' weights, (members,), with sum 1.
        rows: row weights, (rows,); None if each counts once.
    """
    full = pooled_loss(task, terms, weights, rows)
    gains = []
    for left_out in range(len(weights)):
        rest = np.where(np.arange(len(weights)) == left_out, 0.0, weights)
        if rest.sum() <= 0:
            rest = np.where(np.arange(len(weights)) == left_out, 0.0, 1.0)
        gains.append(pooled_loss(task, terms, rest / rest.sum(), rows) - full)
    return np.array(gains)


def _descend(task: Task, terms: Floats, start: Floats, rows: Weights) -> Any:
    """Run Nelder–Mead from `start`, (members - 1,): the members' logits without the last, which is 0."""
    # SciPy's first steps are 5 % of each coordinate, and tiny where it is 0
    simplex = np.vstack([start, start + np.eye(len(start))])
    options = {"initial_simplex": simplex, "maxfev": 400 * len(terms), "xatol": 1e-3, "fatol": 1e-7}
    return minimize(
        lambda x: pooled_loss(task, terms, _softmax(x), rows), start, method="Nelder-Mead", options=options
    )


def _softmax(free: Floats) -> Floats:
    # One logit is fixed: adding a number to all of them changes no weight, so the minimum would be a line.
    logits = np.append(free, 0.0)
    powers = np.exp(logits - logits.max())
    weights: Floats = powers / powers.sum()
    return weights
