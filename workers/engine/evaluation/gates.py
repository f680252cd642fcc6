"""Defines the gates of a promotion as pure functions of metrics and predictions. Needs no model."""

import numpy as np
import numpy.typing as npt

from jobs.contracts.data import Task
from jobs.contracts.gates import Floor, Slice
from jobs.contracts.measures import TEST_METRICS
from jobs.contracts.search import Direction
from workers.engine.arrays import Array
from workers.engine.evaluation.classification import probabilities
from workers.engine.evaluation.gate_metrics import (
    Estimate,
    constant_prediction,
    estimate_gain,
    metric_function,
)
from workers.engine.evaluation.gate_outcome import Alternative, ChallengerMetric, GateOutcome, state_of
from workers.engine.report import finite_or_none


def reaches(value: float, limit: float, direction: Direction) -> bool:
    """Return whether a value is at least as good as a limit; an undefined value is not.

    Args:
        value: of the metric; NaN if undefined.
        limit: of the metric.
        direction: the better direction of the metric.
    """
    return value >= limit if direction == "max" else value <= limit


def metric_gate(
    metric: str, direction: Direction, challenger: Estimate, champion: float, tolerance: float, rows: int
) -> GateOutcome:
    """Pass if the challenger is not worse than the champion by more than the tolerance on the same test rows.

    Args:
        metric: its name.
        direction: its better direction.
        challenger: the challenger's value.
        champion: the champion's value; NaN if undefined.
        tolerance: tolerated loss: of the metric itself if higher values are better (0.01 is one point of
            accuracy), else as a share of the champion's value.
        rows: the number of test rows.
    """
    measured = ChallengerMetric(metric, direction, challenger, rows)
    if not np.isfinite(champion):
        detail = f"the champion's test {metric} is undefined"
        return measured.outcome("metric", "not_evaluated", detail=detail)
    limit = _tolerated(champion, direction, tolerance)
    rule = (
        f"{metric} on the test rows {measured.bound} {limit:.4g}: the champion's {champion:.4g} "
        f"{'minus' if direction == 'max' else 'plus'} the tolerance of "
        f"{_tolerance_text(tolerance, direction)}"
    )
    passed = reaches(challenger.value, limit, direction)
    return measured.outcome("metric", state_of(passed), limit=limit, champion=champion, rule=rule)


def _tolerated(champion: float, direction: Direction, tolerance: float) -> float:
    # The share is of the size of the value, so that the limit of a negative value is not a better one.
    return champion - tolerance if direction == "max" else champion + tolerance * abs(champion)


def _tolerance_text(tolerance: float, direction: Direction) -> str:
    return f"{tolerance:g}" if direction == "max" else f"{100 * tolerance:g} %"


def floor_gate(floor: Floor, direction: Direction, challenger: Estimate, rows: int) -> GateOutcome:
    """Pass if a metric on all test rows reaches the floor.

    Args:
        floor: names the metric and its limit.
        direction: the better direction of the metric.
        challenger: the challenger's value.
        rows: the number of test rows.
    """
    measured = ChallengerMetric(floor.metric, direction, challenger, rows)
    rule = f"{floor.metric} on the test rows {measured.bound} {floor.limit:.4g}"
    passed = reaches(challenger.value, floor.limit, direction)
    return measured.outcome(floor.gate, state_of(passed), limit=floor.limit, rule=rule)


def slice_gate(
    slice_rule: Slice,
    metric: str,
    direction: Direction,
    challenger: Estimate,
    champion: float | None,
    tolerance: float,
    rows: int,
) -> GateOutcome:
    """Pass if a metric on the rows of a slice reaches its limit and that of the champion.

    Args:
        slice_rule: column and value that choose the rows, and the rule for them.
        metric: its metric, or the one of the gates.
        direction: its better direction.
        challenger: the challenger's value on these rows.
        champion: the champion's value on these rows; None or NaN if there is none.
        tolerance: see `metric_gate`.
        rows: the number of these rows.
    """
    measured = ChallengerMetric(metric, direction, challenger, rows)
    limits: list[tuple[float, str]] = []
    if slice_rule.limit is not None:
        limits.append((slice_rule.limit, "set by the gates"))
    if champion is not None and np.isfinite(champion):
        why = f"the champion's {champion:.4g} with the tolerance of {_tolerance_text(tolerance, direction)}"
        limits.append((_tolerated(champion, direction, tolerance), why))
    where = f"{metric} on the {rows:,} test rows with {slice_rule.column} = {slice_rule.value}"
    if not limits:
        detail = "there is neither a champion nor a limit"
        return measured.outcome(slice_rule.gate, "skipped", rule=f"{where} is only shown", detail=detail)
    limit, why = (max if direction == "max" else min)(limits, key=lambda pair: pair[0])
    passed = reaches(challenger.value, limit, direction)
    rule = f"{where} {measured.bound} {limit:.4g}, {why}"
    known = champion if champion is not None and np.isfinite(champion) else None
    return measured.outcome(slice_rule.gate, state_of(passed), limit=limit, champion=known, rule=rule)


def latency_gate(p95: float, ceiling: float | None, detail: str) -> GateOutcome:
    """Pass if the 95th percentile of the time for one row is not above the ceiling, if there is one.

    Args:
        p95: of the time for one row, in milliseconds.
        ceiling: in milliseconds; None if none is set.
        detail: names further times and the hardware.
    """
    if ceiling is None:
        rule = "the time for one row is measured; no ceiling is set"
        return GateOutcome("latency", "passed", p95, detail=detail, rule=rule)
    rule = f"the 95th percentile of the time for one row at most {ceiling:g} ms"
    return GateOutcome("latency", state_of(p95 <= ceiling), p95, ceiling, detail=detail, rule=rule)


def baseline_gate(
    metric: str, task: Task, y_train: npt.ArrayLike, y_test: npt.ArrayLike, y_pred: npt.ArrayLike
) -> GateOutcome:
    """Pass if the model is significantly better than the best constant prediction.

    The constant is the class frequencies of the training rows, or the mean of their targets. For classes, a
    significant gain in log loss also passes: if one class has 99 % of the rows, accuracy can hardly improve.
    Precision and recall of a constant can be 1, so ROC AUC takes their place.

    Args:
        metric: the metric of the gates.
        task: kind of prediction.
        y_train: targets of the training rows.
        y_test: targets of the test rows.
        y_pred: predictions for the test rows.
    """
    truth, guess = np.asarray(y_test), np.asarray(y_pred)
    classes = 0
    if task in ("binary", "multiclass"):
        classes = max(probabilities(guess).shape[1], int(max(truth.max(), np.asarray(y_train).max())) + 1)
    constant = constant_prediction(task, np.asarray(y_train), len(truth), classes)
    first = "roc_auc" if metric in ("precision", "recall") else metric
    names = [first] if task == "regression" else list(dict.fromkeys((first, "log_loss")))
    compared = [_against_constant(name, task, truth, guess, constant) for name in names]
    chosen = next((alternative for alternative in compared if alternative.passed), compared[0])
    also = "".join(f"; a gain in {name} also counts" for name in names[1:])
    rule = (
        f"{first} on the test rows better than that of the best constant prediction "
        f"({'mean of the targets' if task == 'regression' else 'class frequencies'} of the training rows): "
        f"the whole 95 % interval of the gain above 0{also}"
    )
    return GateOutcome(
        "better_than_baseline",
        state_of(chosen.passed),
        finite_or_none(chosen.value),
        finite_or_none(chosen.limit),
        detail="; ".join(alternative.sentence() for alternative in compared),
        metric=chosen.metric,
        direction=chosen.direction,
        rows=len(truth),
        rule=rule,
        alternatives=tuple(compared),
    )


def _against_constant(name: str, task: Task, truth: Array, guess: Array, constant: Array) -> Alternative:
    direction = TEST_METRICS[name][1]
    gain = estimate_gain(name, task, truth, guess, constant, sign=1 if direction == "max" else -1)
    compute = metric_function(name, task)
    return Alternative(
        metric=name,
        direction=direction,
        value=compute(truth, guess),
        limit=compute(truth, constant),
        gain=gain.value,
        low=gain.low,
        high=gain.high,
        # An undefined gain is none, even if some resamples have one.
        passed=bool(np.isfinite(gain.value) and gain.low > 0),
    )


def finite_gate(outputs: list[Array]) -> GateOutcome:
    """Pass if all predictions are finite."""
    bad = sum(int((~np.isfinite(output)).sum()) for output in outputs)
    return GateOutcome(
        "finite",
        state_of(bad == 0),
        float(bad),
        0.0,
        detail="predictions that are not finite",
        rule="no prediction for the test rows is NaN or infinite",
    )
