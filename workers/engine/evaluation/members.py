"""Compares the members of an ensemble on their stored validation predictions and fits their weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jobs.contracts.data import Task
from jobs.kinds.ensemble.payload import Member
from workers.engine.data.table import Array
from workers.engine.errors import EngineError
from workers.engine.evaluation.diversity import diversity
from workers.engine.evaluation.ensemble_weights import (
    FittedWeights,
    Floats,
    equal_weights,
    fit_weights,
    held_out_loss,
    leave_one_out,
    loss_terms,
    pooled_loss,
    weighted_mean,
)
from workers.engine.evaluation.evaluate import evaluate, primary_metric


class BadMembers(EngineError):
    """The members cannot form an ensemble."""

    code = "bad_members"


@dataclass(frozen=True)
class MemberPredictions:
    """Validation predictions of all members on the same rows.

    Attributes:
        task: kind of prediction.
        names: of the members.
        rows: row numbers in the data set, (rows,).
        y_true: true values, (rows, …).
        predictions: of each member, (rows, …).
    """

    task: Task
    names: tuple[str, ...]
    rows: Array
    y_true: Array
    predictions: tuple[Array, ...]


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
    predictions = tuple(arrays["y_pred"] for arrays in read)
    return MemberPredictions(task, names, first["rows"], first["y_true"], predictions)


def compare_members(
    members: MemberPredictions, method: Literal["weighted", "mean"], seed: int
) -> dict[str, Any]:
    """Fit the weights and compare members, plain mean and ensemble on validation data.

    Args:
        members: their predictions.
        method: fitted or equal weights.
        seed: of bootstraps and folds.

    Returns:
        The ensemble's report as a JSON object.
    """
    terms = loss_terms(members.task, members.y_true, members.predictions)
    plain = equal_weights(members.task, terms)
    fit = plain if method == "mean" else fit_weights(members.task, terms)
    one_hot = np.eye(len(members.names))
    compared = [
        *((name, "member", one_hot[k]) for k, name in enumerate(members.names)),
        ("mean", "mean", plain.weights),
        ("ensemble", "ensemble", fit.weights),
    ]
    candidates = [
        {
            "name": name,
            "kind": kind,
            "loss": pooled_loss(members.task, terms, weights),
            "metrics": _validation_metrics(members, weights, seed),
        }
        for name, kind, weights in compared
    ]
    return {
        "task": members.task,
        "method": method,
        "validation_rows": len(members.rows),
        "candidates": candidates,
        "best_single": best_single(candidates, members.task)["name"],
        "weights": [
            {"member": name, "weight": float(w)} for name, w in zip(members.names, fit.weights, strict=True)
        ],
        "fit": _fit_record(members.task, terms, fit, plain, method, seed),
        "diversity": diversity(members.task, members.y_true, members.predictions, members.names),
        "leave_one_out": [
            {"member": name, "gain": float(gain)}
            for name, gain in zip(members.names, leave_one_out(members.task, terms, fit.weights), strict=True)
        ],
        "note": "Weights were fitted on validation predictions made before the members were trained on "
        "validation data, then applied to the members retrained on training and validation data.",
    }


def _validation_metrics(members: MemberPredictions, weights: Floats, seed: int) -> dict[str, Any]:
    prediction = weighted_mean(members.predictions, weights)
    metrics: dict[str, Any] = evaluate(members.task, members.y_true, prediction, (), seed)["metrics"]
    return metrics


def _fit_record(
    task: Task, terms: Floats, fit: FittedWeights, plain: FittedWeights, method: str, seed: int
) -> dict[str, Any]:
    return {
        "loss_name": "standardized mean squared error" if task == "regression" else "log loss",
        "loss": fit.loss,
        "loss_equal_weights": plain.loss,
        "loss_held_out": plain.loss if method == "mean" else held_out_loss(task, terms, seed),
        "evaluations": fit.evaluations,
    }


def best_single(candidates: Sequence[dict[str, Any]], task: Task) -> dict[str, Any]:
    """Return the member with the best primary metric on validation data; ties are decided by loss."""
    metric, direction = primary_metric(task)
    sign = -1 if direction == "max" else 1

    def rank(candidate: dict[str, Any]) -> tuple[bool, float, float]:
        value = candidate["metrics"][metric]["value"]
        return value is None, sign * float(value or 0.0), candidate["loss"]  # an undefined metric is last

    return min((candidate for candidate in candidates if candidate["kind"] == "member"), key=rank)


def ensemble_warnings(comparison: dict[str, Any], members: Sequence[Member]) -> list[tuple[str, str]]:
    """Return warnings about an ensemble as (code, message) pairs.

    Args:
        comparison: result of `compare_members`.
        members: the members.
    """
    warnings = []
    seed_variants = [m.label for m in members if any(o.values == m.values for o in members if o is not m)]
    if seed_variants or all(member.seed_only for member in members):
        names = ", ".join(seed_variants or [m.label for m in members])
        message = f"{names} differ only by their random seed: an ensemble of them gains little"
        warnings.append(("members_differ_by_seed_only", message))
    metric, direction = primary_metric(comparison["task"])
    by_name = {candidate["name"]: candidate for candidate in comparison["candidates"]}
    ours = by_name["ensemble"]["metrics"][metric]["value"]
    best = by_name[comparison["best_single"]]["metrics"][metric]["value"]
    best_member = next(member.label for member in members if member.name == comparison["best_single"])
    is_better = None not in (ours, best) and (ours > best if direction == "max" else ours < best)
    if not is_better:
        message = (
            f"on validation data the ensemble's {metric} {_shown(ours)} does not beat "
            f"the best single member, {best_member}, with {_shown(best)}"
        )
        warnings.append(("ensemble_not_better", message))
    if comparison["fit"]["loss_held_out"] > by_name[comparison["best_single"]]["loss"]:
        message = (
            "on validation rows that they were not fitted on, the weights are worse than "
            f"{best_member}: they may overfit the validation rows"
        )
        warnings.append(("ensemble_may_overfit", message))
    return warnings


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"
