"""Summarizes reports in one sentence each, which pages and REST show before the figures."""

from functools import singledispatch
from typing import Literal, NamedTuple

from jobs.messages.reports.base import MetricValue, ModelReport
from jobs.messages.reports.ensemble import EnsembleReport
from jobs.messages.reports.evaluation import (
    Calibration,
    ClassEvaluation,
    LabelEvaluation,
    RegressionEvaluation,
)
from jobs.messages.reports.quantization import QuantizationReport
from jobs.spec.exports import label_of
from jobs.spec.sections.measures import primary_metric

SAME_SIZE = 0.05
"""Files whose sizes differ by less than this share count as equal: the rounded ratio would be 1."""
SAME_SPEED = 0.05
"""Latencies that differ by less than this share count as equal: repeated measurements differ as much."""


def verdict(report: ModelReport) -> str:
    """Return a report's main finding, and what weighs its rows; empty if it has none."""
    sentence = _finding(report)
    column = getattr(report, "weighted_by", "")
    return f"{sentence} Weighted by {column}." if sentence and column else sentence


@singledispatch
def _finding(report: ModelReport) -> str:
    del report
    return ""


@_finding.register
def _quantization_finding(report: QuantizationReport) -> str:
    findings = [_size(report), _agreement(report)]
    if speed := _speed(report):
        findings.append(speed)
    *others, last = findings
    sentence = f"{label_of(report.mode)} {', '.join(others)}{',' if len(others) > 1 else ''} and {last}"
    metric, direction = primary_metric(report.task)
    before, after = (report.metrics[which].get(metric) for which in ("original", "quantized"))
    if before is None or after is None or before.value is None or after.value is None:
        return f"{sentence}; its test {metric} is undefined."
    if before.value == after.value:
        return f"{sentence}; test {metric} stays at {_figure(after.value)}."
    verb = "rises" if after.value > before.value else "falls"
    better = (after.value > before.value) == (direction == "max")
    meaning = (
        ", within its 95 % interval" if before.holds(after.value) else "" if better else ", which is worse"
    )
    return (
        f"{sentence}; test {metric} {verb} from {_figure(before.value)} to {_figure(after.value)}{meaning}."
    )


def _size(report: QuantizationReport) -> str:
    size = report.bytes.file
    if abs(size.after - size.before) < SAME_SIZE * size.before or size.after == size.before:
        return "is as large as the original"
    if size.after > size.before:
        return f"is {_ratio(size.after / max(size.before, 1))} larger"
    return f"is {_ratio(size.before / max(size.after, 1))} smaller"


def _agreement(report: QuantizationReport) -> str:
    agreement = report.agreement
    if agreement.share is None:
        if agreement.mean_difference is None:
            return "predicts values that cannot be compared"
        return f"differs by {_figure(agreement.mean_difference)} standard deviations of the target on average"
    what = "labels" if report.task == "multilabel" else "rows"
    rows = "the" if report.task == "multilabel" else str(report.test_rows)
    return f"agrees on {percent(agreement.share)} of {rows} test {what}"


def _speed(report: QuantizationReport) -> str:
    before, after = (report.latency.get(which, {}) for which in ("original", "quantized"))
    sizes = [size for size in before if size in after and after[size].p50_ms and before[size].p50_ms]
    if not sizes:
        return ""
    size = min(sizes, key=int)
    change = after[size].p50_ms / before[size].p50_ms
    where = "on this CPU" if report.platform == "cpu" else f"on {report.hardware.split(',')[0]}"
    rows = "" if size == "1" else f" for {size} rows"
    if abs(change - 1) < SAME_SPEED:
        return f"is as fast {where}{rows}"
    return f"is {_ratio(max(change, 1 / change))} {'slower' if change > 1 else 'faster'} {where}{rows}"


@_finding.register
def _ensemble_finding(report: EnsembleReport) -> str:
    best = report.candidate(report.best_single)
    members = [weighted.member for weighted in report.weights if weighted.weight > 0]
    used = len(members)
    name, fit = f"its best member, {report.title(best.name)}", report.fit
    if used == 1:
        title = report.title(members[0])
        return f"The ensemble is one member alone, {title}: no other improved the {fit.loss_name}."
    if fit.loss_held_out is None or best.loss is None:
        return f"The ensemble of {used} members cannot be compared with {name}: a loss is undefined."
    figures = f"{fit.loss_name} {_figure(fit.loss_held_out)} against {_figure(best.loss)}"
    where = f"on {report.validation_rows} validation rows"
    if report.method == "weighted":
        where += ", each scored with weights fitted on other rows"
    metric = _compare_metric(report)
    gain = fit.gain
    # Reports of earlier releases have no interval.
    if gain is None or gain.low is None or gain.high is None:
        word = "better" if fit.loss_held_out < best.loss and metric.verdict != "worse" else "not better"
        return f"The ensemble of {used} members is {word} than {name}: {figures} {where}{metric.clause}."
    interval = f"95 % interval of the gain {_figure(gain.low)} to {_figure(gain.high)}"
    if is_clearly_better(report):
        return f"The ensemble of {used} members beats {name}: {figures} {where} ({interval}){metric.clause}."
    if gain.high < 0:
        return (
            f"The ensemble of {used} members is worse than {name}: {figures} {where} "
            f"({interval}){metric.clause}."
        )
    luck = "" if gain.low > 0 else "; the difference may be luck"
    return (
        f"The ensemble of {used} members is not clearly better than {name}: {figures} {where}"
        f"{luck} ({interval}){metric.clause}."
    )


def is_clearly_better(report: EnsembleReport) -> bool:
    """Return whether an ensemble clearly beats its best member on validation rows.

    Its loss is below the member's by more than luck, and the metric that compares models is not worse.
    """
    gain = report.fit.gain
    several = sum(weighted.weight > 0 for weighted in report.weights) > 1
    has_gain = gain is not None and gain.low is not None and gain.low > 0
    return several and has_gain and _compare_metric(report).verdict in ("better", "equal")


class _MetricComparison(NamedTuple):
    """How an ensemble's primary metric compares with that of its best member, and the clause about it."""

    verdict: Literal["better", "equal", "worse", "unknown"]
    clause: str


def _compare_metric(report: EnsembleReport) -> _MetricComparison:
    metric, direction = primary_metric(report.task)
    ensemble, member = report.candidate("ensemble"), report.candidate(report.best_single)
    ours, best = (candidate.metrics[metric].value for candidate in (ensemble, member))
    if ours is None or best is None:
        return _MetricComparison("unknown", f"; {metric} is undefined")
    # Values that are shown as the same number are called equal.
    if _figure(ours) == _figure(best):
        return _MetricComparison("equal", f"; {metric} is equal, {_figure(ours)}")
    is_better = (ours > best) == (direction == "max")
    return _MetricComparison(
        "better" if is_better else "worse",
        f"; {metric} is {'better' if is_better else 'worse'}, {_figure(ours)} against {_figure(best)}",
    )


@_finding.register
def _class_finding(report: ClassEvaluation) -> str:
    accuracy = report.metrics["accuracy"]
    ranking = report.metrics.get("roc_auc")
    auc = (
        "" if ranking is None or ranking.value is None else f"; area under the ROC curve {ranking.value:.3f}"
    )
    return (
        f"Right on {_share(accuracy)} of {report.rows} test rows{_interval(accuracy)}"
        f"{_confidence(report.calibration)}{auc}.{_not_finite(report.nonfinite_rows)}"
    )


@_finding.register
def _label_finding(report: LabelEvaluation) -> str:
    accuracy, exact = report.metrics["accuracy"], report.metrics["exact_match"]
    return (
        f"Right on {_share(accuracy)} of the labels, and on all labels of {_share(exact)} of {report.rows} "
        f"test rows{_interval(exact)}{_confidence(report.calibration)}.{_not_finite(report.nonfinite_rows)}"
    )


@_finding.register
def _regression_finding(report: RegressionEvaluation) -> str:
    error, explained = report.metrics["rmse"].value, report.metrics["r2"].value
    if error is None:
        return f"The error on {report.rows} test rows is undefined.{_not_finite(report.nonfinite_rows)}"
    spread = "" if report.target_std is None else (
        f", where always predicting the mean is off by {_figure(report.target_std)}"
    )  # fmt: skip
    share = "" if explained is None else f"; it explains {percent(explained)} of the variance"
    return (
        f"Off by {_figure(error)} (root mean squared error) on {report.rows} test rows"
        f"{_interval(report.metrics['rmse'], as_share=False)}{spread}{share}."
        f"{_not_finite(report.nonfinite_rows)}"
    )


def _confidence(calibration: Calibration) -> str:
    if calibration.ece is None or calibration.bias is None:
        return ""
    side = "too high" if calibration.bias > 0 else "too low"
    return f"; its confidence is off by {100 * calibration.ece:.1f} points on average, mostly {side}"


def _not_finite(rows: int) -> str:
    return f" {rows} row{'s' if rows > 1 else ''} got no finite prediction." if rows else ""


def _share(metric: MetricValue) -> str:
    return "an unknown share" if metric.value is None else percent(metric.value)


def _interval(metric: MetricValue, *, as_share: bool = True) -> str:
    if metric.low is None or metric.high is None:
        return ""
    if not as_share:
        return f" (95 % interval {_figure(metric.low)} to {_figure(metric.high)})"
    return f" (95 % interval {100 * metric.low:.1f} to {percent(metric.high)})"


def percent(share: float) -> str:
    """Return a share as a percentage with one decimal; only all is 100 % and only none is 0 %.

    >>> percent(0.994), percent(1.0), percent(0.9999)
    ('99.4 %', '100 %', '99.9 %')
    """
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    # Rounding would hide the rows that differ.
    return f"{min(max(100 * share, 0.1), 99.9) if 0 < share < 1 else 100 * share:.1f} %"


def _ratio(ratio: float) -> str:
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×".replace(".0×", "×")


def _figure(value: float) -> str:
    return f"{value:.4g}" if abs(value) >= 1 else f"{value:.3g}"
