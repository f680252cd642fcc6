"""The members of an ensemble, judged side by side on their stored validation predictions."""

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
    Fit,
    Floats,
    equal_weights,
    evidence,
    fit_weights,
    held_out_loss,
    leave_one_out,
    pool,
    pooled_loss,
)
from workers.engine.evaluation.evaluate import evaluate, primary_metric


class BadMembers(EngineError):
    """The members cannot be pooled."""

    code = "bad_members"


@dataclass(frozen=True)
class Pool:
    """The members' validation predictions on the same rows."""

    task: Task
    names: tuple[str, ...]
    rows: Array
    y_true: Array
    predictions: tuple[Array, ...]


def read_pool(members: Sequence[Member], task: Task) -> Pool:
    """Read the members' stored predictions.

    Raises:
        BadMembers: they are not of the same rows or not of one shape.
    """
    read = []
    for member in members:
        with np.load(member.validation_predictions, allow_pickle=False) as arrays:
            read.append({name: arrays[name] for name in ("rows", "y_true", "y_pred")})
    first = read[0]
    for member, arrays in zip(members, read, strict=True):
        if not np.array_equal(arrays["rows"], first["rows"]):
            raise BadMembers(f"{member.called} was validated on other rows than {members[0].called}")
        if arrays["y_pred"].shape != first["y_pred"].shape:
            raise BadMembers(
                f"{member.called} predicts {arrays['y_pred'].shape}, "
                f"{members[0].called} {first['y_pred'].shape}; members must answer the same question"
            )
    names = tuple(member.name for member in members)
    predictions = tuple(arrays["y_pred"] for arrays in read)
    return Pool(task, names, first["rows"], first["y_true"], predictions)


def judge(pooled: Pool, method: Literal["weighted", "mean"], seed: int) -> dict[str, Any]:
    """Find the weights and set members, plain mean and ensemble side by side on validation data."""
    found = evidence(pooled.task, pooled.y_true, pooled.predictions)
    plain = equal_weights(pooled.task, found)
    fit = plain if method == "mean" else fit_weights(pooled.task, found)
    singles = np.eye(len(pooled.names))
    shown = [
        *((name, "member", singles[k]) for k, name in enumerate(pooled.names)),
        ("mean", "mean", plain.weights),
        ("ensemble", "ensemble", fit.weights),
    ]
    candidates = [
        {
            "name": name,
            "kind": kind,
            "loss": pooled_loss(pooled.task, found, weights),
            "metrics": _validation_metrics(pooled, weights, seed),
        }
        for name, kind, weights in shown
    ]
    return {
        "task": pooled.task,
        "method": method,
        "validation_rows": len(pooled.rows),
        "candidates": candidates,
        "best_single": _best_single(candidates, pooled.task)["name"],
        "weights": [
            {"member": name, "weight": float(w)} for name, w in zip(pooled.names, fit.weights, strict=True)
        ],
        "fit": _fit_record(pooled.task, found, fit, plain, method, seed),
        "diversity": diversity(pooled.task, pooled.y_true, pooled.predictions, pooled.names),
        "leave_one_out": [
            {"member": name, "gain": float(gain)}
            for name, gain in zip(pooled.names, leave_one_out(pooled.task, found, fit.weights), strict=True)
        ],
        "note": "Weights were fitted on validation predictions made before the members saw validation "
        "data, then carried to the members retrained on training and validation data.",
    }


def _validation_metrics(pooled: Pool, weights: Floats, seed: int) -> dict[str, Any]:
    prediction = pool(pooled.predictions, weights)
    metrics: dict[str, Any] = evaluate(pooled.task, pooled.y_true, prediction, (), seed)["metrics"]
    return metrics


def _fit_record(task: Task, found: Floats, fit: Fit, plain: Fit, method: str, seed: int) -> dict[str, Any]:
    return {
        "loss_name": "standardized mean squared error" if task == "regression" else "log loss",
        "loss": fit.loss,
        "loss_equal_weights": plain.loss,
        "loss_held_out": plain.loss if method == "mean" else held_out_loss(task, found, seed),
        "evaluations": fit.evaluations,
    }


def _best_single(candidates: Sequence[dict[str, Any]], task: Task) -> dict[str, Any]:
    """Return the member with the best primary metric on validation data; equal ones by loss."""
    metric, direction = primary_metric(task)
    sign = -1 if direction == "max" else 1
    members = [candidate for candidate in candidates if candidate["kind"] == "member"]
    return min(members, key=lambda c: (sign * (_value(c, metric, default=-sign)), c["loss"]))


def _value(candidate: dict[str, Any], metric: str, *, default: float) -> float:
    value = candidate["metrics"][metric]["value"]
    return float("inf") * default if value is None else float(value)


def warnings(judged: dict[str, Any], members: Sequence[Member]) -> list[tuple[str, str]]:
    """Say what the user should know before trusting this ensemble: (code, sentence) each."""
    found = []
    twins = [m.called for m in members if any(o.values == m.values for o in members if o is not m)]
    if twins or all(member.seed_only for member in members):
        names = ", ".join(twins or [m.called for m in members])
        message = f"{names} differ only by their random seed: pooling them gains little"
        found.append(("members_differ_by_seed_only", message))
    metric, direction = primary_metric(judged["task"])
    by_name = {candidate["name"]: candidate for candidate in judged["candidates"]}
    ours = by_name["ensemble"]["metrics"][metric]["value"]
    best = by_name[judged["best_single"]]["metrics"][metric]["value"]
    leader = next(member.called for member in members if member.name == judged["best_single"])
    beats = None not in (ours, best) and (ours > best if direction == "max" else ours < best)
    if not beats:
        message = (
            f"on validation data the ensemble's {metric} {_shown(ours)} does not beat "
            f"the best single member, {leader}, with {_shown(best)}"
        )
        found.append(("ensemble_not_better", message))
    if judged["fit"]["loss_held_out"] > by_name[judged["best_single"]]["loss"]:
        message = (
            "on validation rows that they were not fitted on, the weights lose to "
            f"{leader}: they may have learned the validation rows by heart"
        )
        found.append(("ensemble_may_overfit", message))
    return found


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"
