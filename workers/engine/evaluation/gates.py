"""Defines a promotion's gates as pure functions that take metrics and predictions. Needs no model."""

import numpy as np
import numpy.typing as npt

from jobs.spec.gates import Floor, Slice
from jobs.spec.sections.data import Task
from jobs.spec.sections.measures import TEST_METRICS
from jobs.spec.sections.search import Direction
from workers.engine.arrays import Array
from workers.engine.data.weights import RowWeights
from workers.engine.evaluation.classification import probabilities
from workers.engine.evaluation.gate_metrics import (
    constant_prediction,
    estimate_gain,
    metric_function,
)
from workers.engine.evaluation.gate_outcome import (
    Alternative,
    ChallengerMetric,
    GateOutcome,
    state_of,
    weighting,
)
from workers.engine.evaluation.weighting import Weights
from workers.engine.report import finite_or_none


def reaches(value: float, limit: float, direction: Direction) -> bool:
    """Return whether a value is at least as good as a limit; an undefined value is not.

    Args:
        value: the metric's value; NaN if undefined.
        limit: the metric's limit.
        direction: the metric's better direction.
    """
    return value >= limit if direction == "max" else value <= limit


def metric_gate(measured: ChallengerMetric, champion: float, tolerance: float) -> GateOutcome:
    """Pass if the challenger is not worse than the champion by more than the tolerance on the same test rows.

    Args:
        measured: the challenger's value.
        champion: the champion's value; NaN if undefined.
        tolerance: tolerated loss: in the metric itself if higher values are better (0.01 is one point of
            accuracy), else as a share of the champion's value.
    """
    metric, direction = measured.metric, measured.direction
    if not np.isfinite(champion):
        detail = f"the champion's test {metric} is undefined"
        return measured.outcome("metric", "not_evaluated", detail=detail)
    limit = _tolerated(champion, direction, tolerance)
    rule = (
        f"{metric} on the test rows{measured.weighting} {measured.bound} {limit:.4g}: the champion's "
        f"{champion:.4g} "
        f"{'minus' if direction == 'max' else 'plus'} the tolerance of "
        f"{_tolerance_text(tolerance, direction)}"
    )
    passed = reaches(measured.value.value, limit, direction)
    return measured.outcome("metric", state_of(passed), limit=limit, champion=champion, rule=rule)


def _tolerated(champion: float, direction: Direction, tolerance: float) -> float:
    # The share is of the size of the value, so that the limit of a negative value is not a better one.
    return champion - tolerance if direction == "max" else champion + tolerance * abs(champion)


def _tolerance_text(tolerance: float, direction: Direction) -> str:
    return f"{tolerance:g}" if direction == "max" else f"{100 * tolerance:g} %"


def floor_gate(floor: Floor, measured: ChallengerMetric) -> GateOutcome:
    """Pass if a metric on all test rows reaches the floor.

    Args:
        floor: names the metric and its limit.
        measured: the challenger's value.
    """
    rule = f"{floor.metric} on the test rows{measured.weighting} {measured.bound} {floor.limit:.4g}"
    passed = reaches(measured.value.value, floor.limit, measured.direction)
    return measured.outcome(floor.gate, state_of(passed), limit=floor.limit, rule=rule)


def slice_gate(
    slice_rule: Slice, measured: ChallengerMetric, champion: float | None, tolerance: float
) -> GateOutcome:
    """Pass if a metric on a slice's rows reaches its limit and the champion's.

    Args:
        slice_rule: column and value that choose the rows, and the rule for them.
        measured: the challenger's value on these rows.
        champion: the champion's value on these rows; None or NaN if there is none.
        tolerance: see `metric_gate`.
    """
    direction = measured.direction
    limits: list[tuple[float, str]] = []
    if slice_rule.limit is not None:
        limits.append((slice_rule.limit, "set by the gates"))
    if champion is not None and np.isfinite(champion):
        why = f"the champion's {champion:.4g} with the tolerance of {_tolerance_text(tolerance, direction)}"
        limits.append((_tolerated(champion, direction, tolerance), why))
    where = (
        f"{measured.metric} on the {measured.rows:,} test rows with {slice_rule.column} = {slice_rule.value}"
        f"{measured.weighting}"
    )
    if not limits:
        detail = "there is neither a champion nor a limit"
        return measured.outcome(slice_rule.gate, "skipped", rule=f"{where} is only shown", detail=detail)
    limit, why = (max if direction == "max" else min)(limits, key=lambda pair: pair[0])
    passed = reaches(measured.value.value, limit, direction)
    rule = f"{where} {measured.bound} {limit:.4g}, {why}"
    finite_champion = champion if champion is not None and np.isfinite(champion) else None
    return measured.outcome(
        slice_rule.gate, state_of(passed), limit=limit, champion=finite_champion, rule=rule
    )


def latency_gate(p95: float, ceiling: float | None, detail: str) -> GateOutcome:
    """Pass if the 95th percentile of one row's time is not above the ceiling, if there is one.

    Args:
        p95: the 95th percentile, in milliseconds.
        ceiling: in milliseconds; None if none is set.
        detail: names further times and the hardware.
    """
    if ceiling is None:
        rule = "the time for one row is measured; no ceiling is set"
        return GateOutcome("latency", "passed", p95, detail=detail, rule=rule)
    rule = f"the 95th percentile of the time for one row at most {ceiling:g} ms"
    return GateOutcome("latency", state_of(p95 <= ceiling), p95, ceiling, detail=detail, rule=rule)


def baseline_gate(
    metric: str,
    task: Task,
    y_train: npt.ArrayLike,
    y_test: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    weights: tuple[RowWeights, RowWeights] | None = None,
) -> GateOutcome:
    """Pass if the model is significantly better than the best constant prediction.

    The constant is the training rows' class frequencies, or their mean target. For classes, a
    significant gain in log loss also passes: if one class has 99 % of the rows, accuracy can hardly improve.
    A constant's precision and recall can be 1, so ROC AUC takes their place.

    Args:
        metric: the metric that the gates compare.
        task: the prediction task.
        y_train: the training rows' targets.
        y_test: the test rows' targets.
        y_pred: predictions for the test rows.
        weights: for the training and the test rows; None if each row counts once.
    """
    of_train, of_test = (None, None) if weights is None else (part.values for part in weights)
    truth, guess = np.asarray(y_test), np.asarray(y_pred)
    classes = 0
    if task in ("binary", "multiclass"):
        classes = max(probabilities(guess).shape[1], int(max(truth.max(), np.asarray(y_train).max())) + 1)
    constant = constant_prediction(task, np.asarray(y_train), len(truth), classes, of_train)
    first = "roc_auc" if metric in ("precision", "recall") else metric
    names = [first] if task == "regression" else list(dict.fromkeys((first, "log_loss")))
    compared = [_against_constant(name, task, truth, guess, constant, of_test) for name in names]
    chosen = next((alternative for alternative in compared if alternative.passed), compared[0])
    also = "".join(f"; a gain in {name} also counts" for name in names[1:])
    weighted = weighting(weights[1].column if weights is not None else "")
    rule = (
        f"{first} on the test rows{weighted} better than that of the best constant prediction "
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


def _against_constant(
    name: str, task: Task, truth: Array, guess: Array, constant: Array, weights: Weights
) -> Alternative:
    direction = TEST_METRICS[name][1]
    sign = 1 if direction == "max" else -1
    gain = estimate_gain(name, task, truth, guess, constant, sign=sign, weights=weights)
    compute = metric_function(name, task)
    return Alternative(
        metric=name,
        direction=direction,
        value=compute(truth, guess, weights),
        limit=compute(truth, constant, weights),
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
        detail=f"{bad} values are not finite" if bad else "all values are finite",
        rule="no prediction for the test rows is NaN or infinite",
    )
