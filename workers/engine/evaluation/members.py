"""Compares an ensemble's members on their stored validation predictions and fits their weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jobs.messages.member import Member
from jobs.messages.reports.base import MetricValue
from jobs.messages.reports.ensemble import (
    Candidate,
    EnsembleReport,
    MemberGain,
    MemberTitle,
    MemberWeight,
    WeightFit,
)
from jobs.messages.reports.verdicts import is_clearly_better, verdict
from jobs.spec.sections.data import Task
from jobs.spec.sections.measures import primary_metric
from workers.engine.arrays import Array, Floats
from workers.engine.data.weights import RowWeights
from workers.engine.errors import EngineError
from workers.engine.evaluation.diversity import diversity
from workers.engine.evaluation.ensemble_weights import (
    FittedWeights,
    equal_weights,
    fit_weights,
    held_out_losses,
    leave_one_out,
    loss_terms,
    pooled_loss,
    pooled_losses,
    weighted_mean,
)
from workers.engine.evaluation.evaluate import evaluate
from workers.engine.evaluation.intervals import bootstrap, metric_entry
from workers.engine.evaluation.weighting import Weights, mean, of_rows

FITTED_NOTE = (
    "Weights were fitted on validation predictions made before the members were trained on validation data, "
    "then applied to the members retrained on training and validation data."
)


class BadMembers(EngineError):
    """The members cannot form an ensemble."""

    code = "bad_members"


@dataclass(frozen=True)
class MemberPredictions:
    """All members' validation predictions on the same rows.

    Attributes:
        task: the prediction task.
        names: the member names.
        titles: the member names for people.
        rows: row numbers in the data set, (rows,).
        y_true: true values, (rows, …).
        predictions: each member's predictions, (rows, …).
        weights: row weights; None if each counts once.
    """

    task: Task
    names: tuple[str, ...]
    titles: tuple[str, ...]
    rows: Array
    y_true: Array
    predictions: tuple[Array, ...]
    weights: RowWeights | None = None

    @property
    def row_weights(self) -> Weights:
        """The array in `weights`; None without weights."""
        return None if self.weights is None else self.weights.values


def read_predictions(members: Sequence[Member], task: Task) -> MemberPredictions:
    """Read the members' stored predictions.

    Raises:
        BadMembers: their rows or shapes differ.
    """
    read = []
    for member in members:
        with np.load(member.validation_predictions, allow_pickle=False) as arrays:
            read.append({name: arrays[name] for name in ("rows", "y_true", "y_pred")})
    first = read[0]
    for member, arrays in zip(members, read, strict=True):
        if not np.array_equal(arrays["rows"], first["rows"]):
            raise BadMembers(f"{member.label} was validated on other rows than {members[0].label}")
        if arrays["y_pred"].shape != first["y_pred"].shape:
            raise BadMembers(
                f"{member.label} predicts {arrays['y_pred'].shape}, "
                f"{members[0].label} {first['y_pred'].shape}; all members must predict the same target"
            )
    names = tuple(member.name for member in members)
    titles = tuple(member.label for member in members)
    predictions = tuple(arrays["y_pred"] for arrays in read)
    return MemberPredictions(task, names, titles, first["rows"], first["y_true"], predictions)


def compare_members(
    members: MemberPredictions, method: Literal["weighted", "mean"], seed: int, best_member: str = ""
) -> EnsembleReport:
    """Fit the weights and compare members, plain mean and ensemble on validation data.

    Args:
        members: their predictions.
        method: fitted or equal weights.
        seed: for bootstraps and folds.
        best_member: the member that the objective chose; empty: the one with the best primary metric.
    """
    terms, rows = loss_terms(members.task, members.y_true, members.predictions), members.row_weights
    plain = equal_weights(members.task, terms, rows)
    fit = plain if method == "mean" else fit_weights(members.task, terms, rows)
    gains = leave_one_out(members.task, terms, fit.weights, rows)
    candidates = _candidates(members, terms, plain.weights, fit.weights, seed)
    best = best_member or best_single(candidates, members.task).name
    return EnsembleReport(
        task=members.task,
        method=method,
        validation_rows=len(members.rows),
        candidates=candidates,
        best_single=best,
        weights=tuple(
            MemberWeight(member=name, weight=float(w))
            for name, w in zip(members.names, fit.weights, strict=True)
        ),
        fit=_weight_fit(members, terms, plain, fit, best, seed),
        diversity=diversity(members.task, members.y_true, members.predictions, members.names),
        leave_one_out=tuple(
            MemberGain(member=name, gain=float(gain)) for name, gain in zip(members.names, gains, strict=True)
        ),
        note=FITTED_NOTE if method == "weighted" else "",
        weighted_by="" if members.weights is None else members.weights.column,
        members=tuple(
            MemberTitle(name=name, title=title)
            for name, title in zip(members.names, members.titles, strict=True)
        ),
    )


def _weight_fit(
    members: MemberPredictions,
    terms: Floats,
    plain: FittedWeights,
    fit: FittedWeights,
    best: str,
    seed: int,
) -> WeightFit:
    """Return the weights' losses, beside those with equal weights and for the best member alone."""
    task = members.task
    # Equal weights are not fitted, so no rows have to be left out.
    rows = members.row_weights
    held_out = (
        pooled_losses(task, terms, plain.weights)
        if fit is plain
        else held_out_losses(task, terms, seed, rows)
    )
    alone = pooled_losses(task, terms, np.eye(len(members.names))[members.names.index(best)])
    return WeightFit(
        loss_name="standardized mean squared error" if task == "regression" else "log loss",
        loss=fit.loss,
        loss_equal_weights=plain.loss,
        loss_held_out=mean(held_out, rows),
        evaluations=fit.evaluations,
        gain=_mean_gain(alone - held_out, seed, rows),
    )


def _candidates(
    members: MemberPredictions, terms: Floats, plain: Floats, fitted: Floats, seed: int
) -> tuple[Candidate, ...]:
    """Return each member alone, the plain mean and the fitted ensemble with their validation figures."""
    compared: list[tuple[str, Literal["member", "mean", "ensemble"], Floats]] = [
        *((name, "member", row) for name, row in zip(members.names, np.eye(len(members.names)), strict=True)),
        ("mean", "mean", plain),
        ("ensemble", "ensemble", fitted),
    ]
    return tuple(
        Candidate(
            name=name,
            kind=kind,
            loss=pooled_loss(members.task, terms, weights, members.row_weights),
            metrics=evaluate(
                members.task,
                members.y_true,
                weighted_mean(members.predictions, weights),
                (),
                seed,
                members.weights,
            ).metrics,
        )
        for name, kind, weights in compared
    )


def _mean_gain(gains: Floats, seed: int, weights: Weights) -> MetricValue:
    """Return the rows' mean gain, (rows,), with its interval.

    The gains are resampled, not the two losses: so rows that are hard for both cancel out.
    """
    interval = bootstrap(lambda rows: mean(gains[rows], of_rows(weights, rows)), len(gains), seed)
    return metric_entry(mean(gains, weights), len(gains), interval, "bootstrap")


def best_single(candidates: Sequence[Candidate], task: Task) -> Candidate:
    """Return the member with the best primary metric on validation data; ties are decided by loss."""
    metric, direction = primary_metric(task)
    sign = -1 if direction == "max" else 1

    def rank(candidate: Candidate) -> tuple[bool, float, float]:
        value, loss = candidate.metrics[metric].value, candidate.loss
        # False sorts before True: an undefined metric is last
        return value is None, sign * float(value or 0.0), math.inf if loss is None else loss

    return min((candidate for candidate in candidates if candidate.kind == "member"), key=rank)


def ensemble_warnings(comparison: EnsembleReport, members: Sequence[Member]) -> list[tuple[str, str]]:
    """Return warnings about an ensemble as (code, message) pairs.

    Args:
        comparison: what `compare_members` returned.
        members: the members.
    """
    warnings = []
    seed_variants = [m.label for m in members if any(o.values == m.values for o in members if o is not m)]
    if seed_variants:
        names = ", ".join(seed_variants)
        message = (
            f"{names} differ only by their random seed, so an ensemble of them gains little. Retrain trials "
            "with different values, or search hyperparameters of the model."
        )
        warnings.append(("members_differ_by_seed_only", message))
    # The same judgement and sentence as among the findings, so that the two cannot contradict each other.
    if not is_clearly_better(comparison):
        message = f"{verdict(comparison)} Use ensemble members whose errors differ more, or a single model."
        warnings.append(("ensemble_not_better", message))
    single = comparison.candidate(comparison.best_single)
    held_out = comparison.fit.loss_held_out
    if held_out is not None and single.loss is not None and held_out > single.loss:
        message = (
            "on validation rows that they were not fitted on, the weights are worse than "
            f"{comparison.title(single.name)}: they may overfit the validation rows. Use a larger validation "
            "part, or a single model."
        )
        warnings.append(("ensemble_may_overfit", message))
    return warnings
