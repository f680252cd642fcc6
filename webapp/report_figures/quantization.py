"""Prepares a quantization report: sizes, metrics, latency and each layer's error."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jobs.messages.reports.base import MetricValue
from jobs.messages.reports.quantization import CallTime, LayerError, QuantizationReport
from jobs.spec.exports import label_of
from jobs.spec.sections.measures import EVALUATION_METRICS
from webapp.report_figures import geometry
from webapp.report_figures.intervals import IntervalMethod, methods_of
from webapp.template_context import Context


class Comparison(NamedTuple):
    """A value before and after a change."""

    name: str
    before: MetricValue
    after: MetricValue
    change: float | None
    is_worse: bool


class SizeRow(NamedTuple):
    """A size before and after, with the bars of both and their ratio."""

    name: str
    before: int
    after: int
    bars: tuple[float, float]
    ratio: float | None


class TimeRow(NamedTuple):
    """The time of a call of one of the models, with its bars."""

    which: str
    time: CallTime
    p50: float
    p95: float


class BatchTimes(NamedTuple):
    """The times of calls with one batch size, and how much faster or slower the quantized model is."""

    size: str
    times: list[TimeRow]
    speed: tuple[float, str] | None


@dataclass(frozen=True)
class QuantizationFigures(Context):
    """The figures of a quantization's report."""

    label: str
    sizes: list[SizeRow]
    compared: list[Comparison]
    intervals: Sequence[IntervalMethod]
    latency: list[BatchTimes]
    layers: list[tuple[LayerError, float]]


def quantization_context(report: QuantizationReport) -> QuantizationFigures:
    """Return the variables for `components/reports/quantization_report.html`."""
    before, after = (report.metrics.get(which, {}) for which in ("original", "quantized"))
    compared = [_compare_metric(name, before[name], after[name]) for name in before if name in after]
    latency = {which: report.latency.get(which, {}) for which in ("original", "quantized")}
    largest = max((time.p95_ms for times in latency.values() for time in times.values()), default=1.0)
    return QuantizationFigures(
        label=label_of(report.mode),
        sizes=[
            _compare_sizes("File", report.bytes.file.before, report.bytes.file.after),
            _compare_sizes("Weights in memory", report.bytes.weights.before, report.bytes.weights.after),
        ],
        compared=compared,
        intervals=methods_of(
            value for comparison in compared for value in (comparison.before, comparison.after)
        ),
        latency=[
            BatchTimes(
                size=size,
                times=[
                    TimeRow(
                        which=which,
                        time=times[size],
                        p50=round(100 * times[size].p50_ms / (largest or 1.0), 1),
                        p95=round(100 * times[size].p95_ms / (largest or 1.0), 1),
                    )
                    for which, times in latency.items()
                    if size in times
                ],
                speed=_speed_factor(latency, size),
            )
            for size in sorted({*latency["original"], *latency["quantized"]}, key=int)
        ],
        layers=list(
            zip(
                report.layers,
                geometry.bar_lengths(report.layers, lambda layer: layer.relative_error),
                strict=True,
            )
        ),
    )


def _compare_sizes(name: str, before: int, after: int) -> SizeRow:
    top = max(before, after, 1)
    bars = (round(100 * before / top, 1), round(100 * after / top, 1))
    return SizeRow(name, before, after, bars, before / after if after else None)


def _compare_metric(name: str, before: MetricValue, after: MetricValue) -> Comparison:
    change = None if before.value is None or after.value is None else after.value - before.value
    smaller = EVALUATION_METRICS.get(name) == "min"
    is_worse = change is not None and change != 0 and (change > 0) == smaller
    return Comparison(name, before, after, change, is_worse and not before.holds(after.value or 0.0))


def _speed_factor(latency: dict[str, dict[str, CallTime]], size: str) -> tuple[float, str] | None:
    """Return the quantized model's speed factor, at least 1, and whether it is faster or slower."""
    before, after = latency["original"].get(size), latency["quantized"].get(size)
    if before is None or after is None or not before.p50_ms or not after.p50_ms:
        return None
    ratio = before.p50_ms / after.p50_ms
    return (ratio, "faster") if ratio >= 1 else (1 / ratio, "slower")
