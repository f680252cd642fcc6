"""Prepares an evaluation report: confusion, calibration, ROC curve and residuals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from jobs.messages.reports.evaluation import (
    Calibration,
    ClassEvaluation,
    Histogram,
    LabelEvaluation,
    OutputReport,
    RegressionEvaluation,
)
from webapp.report_figures import geometry
from webapp.report_figures.geometry import SHADES
from webapp.report_figures.intervals import IntervalMethod, methods_of
from webapp.template_context import Context

WIDTH, HEIGHT = 480, 160
ROC_ROWS = 12
"""The table of a ROC curve has about this many of its points."""


class MatrixCell(NamedTuple):
    """How many rows of a true class were predicted as another one, or as this one."""

    number: int
    shade: int
    right: bool


class MatrixRow(NamedTuple):
    """A true class with its predictions."""

    label: str
    cells: list[MatrixCell]
    total: int


class ConfusionMatrix(NamedTuple):
    """The true classes in rows, the predicted ones in columns."""

    labels: Sequence[str]
    rows: list[MatrixRow]


class CalibrationFigure(NamedTuple):
    """The chart of accuracy over confidence."""

    frame: geometry.Frame
    calibration: Calibration
    side: str
    diagonal: str
    bars: list[geometry.Bar]
    points: list[tuple[float, float, float]]


class RocFigure(NamedTuple):
    """The ROC curve, with some of its points as rows of a table."""

    frame: geometry.Frame
    curve: str
    diagonal: str
    auc: float | None
    positive: str
    rows: list[tuple[float | None, float, float]]


class OutputFigure(NamedTuple):
    """The histogram and the pairs of true and predicted values of one output."""

    report: OutputReport
    bars: list[geometry.Bar]
    dots: list[tuple[float, float]]
    width: int
    height: int
    counts: list[tuple[tuple[float, float], int]]


@dataclass(frozen=True)
class EvaluationFigures(Context):
    """The figures of an evaluation: those of classes, of labels, or of numbers."""

    intervals: Sequence[IntervalMethod]
    matrix: ConfusionMatrix | None = None
    per_class: Sequence[tuple[Any, Any]] = ()
    calibration: CalibrationFigure | None = None
    roc: RocFigure | None = None
    is_multilabel: bool = False
    outputs: Sequence[OutputFigure] = ()


def classes_context(report: ClassEvaluation) -> EvaluationFigures:
    """Return the variables for `components/reports/evaluation.html`."""
    return EvaluationFigures(
        intervals=methods_of(report.metrics.values()),
        matrix=_confusion_matrix(report),
        per_class=[(scores, None) for scores in report.per_class],
        calibration=_calibration_figure(report.calibration),
        roc=_roc_figure(report),
    )


def labels_context(report: LabelEvaluation) -> EvaluationFigures:
    """Return the variables for `components/reports/evaluation.html`."""
    return EvaluationFigures(
        intervals=methods_of(report.metrics.values()),
        calibration=_calibration_figure(report.calibration),
        is_multilabel=True,
        per_class=list(zip(report.per_class, report.confusion_per_label, strict=True)),
    )


def regression_context(report: RegressionEvaluation) -> EvaluationFigures:
    """Return the variables for `components/reports/evaluation.html`."""
    return EvaluationFigures(
        intervals=methods_of(report.metrics.values()),
        outputs=[_output_figure(output) for output in report.outputs],
    )


def _confusion_matrix(report: ClassEvaluation) -> ConfusionMatrix:
    rows = []
    for true, (label, counts) in enumerate(zip(report.class_labels, report.confusion, strict=True)):
        total = sum(counts) or 1
        cells = [
            MatrixCell(count, round(SHADES * count / total), predicted == true)
            for predicted, count in enumerate(counts)
        ]
        rows.append(MatrixRow(label, cells, sum(counts)))
    return ConfusionMatrix(report.class_labels, rows)


def _calibration_figure(calibration: Calibration) -> CalibrationFigure | None:
    if not (total := sum(group.rows for group in calibration.bins)):
        return None
    frame = geometry.unit_frame()
    return CalibrationFigure(
        frame=frame,
        calibration=calibration,
        side="" if calibration.bias is None else "high" if calibration.bias > 0 else "low",
        diagonal=geometry.polyline(frame, [(0, 0), (1, 1)]),
        bars=[
            geometry.Bar(
                frame.x(b.low) + 1,
                frame.y(b.accuracy),
                round(frame.x(b.high) - frame.x(b.low) - 2, 1),
                round(frame.bottom - frame.y(b.accuracy), 1),
                f"confidence {b.low:g} to {b.high:g}: {b.accuracy:.3f} of {b.rows} predictions are right, "
                f"confidence {b.confidence:.3f}",
            )
            for b in calibration.bins
        ],
        points=[
            (frame.x(b.confidence), frame.y(b.accuracy), round(2 + 4 * math.sqrt(b.rows / total), 1))
            for b in calibration.bins
        ],
    )


def _roc_figure(report: ClassEvaluation) -> RocFigure | None:
    if not report.roc_curve:
        return None
    frame = geometry.unit_frame()
    step = max(len(report.roc_curve) // ROC_ROWS, 1)
    # Reports of earlier releases have no thresholds. The first point has none.
    thresholds = (None, *report.roc_thresholds) if report.roc_thresholds else (None,) * len(report.roc_curve)
    points = list(zip(thresholds, report.roc_curve, strict=True))
    rows = [*points[:-1:step], points[-1]]
    return RocFigure(
        frame=frame,
        curve=geometry.polyline(frame, report.roc_curve),
        diagonal=geometry.polyline(frame, [(0, 0), (1, 1)]),
        auc=report.metrics["roc_auc"].value,
        positive=report.class_labels[1],
        rows=[(threshold, false, true) for threshold, (false, true) in rows],
    )


def _output_figure(output: OutputReport) -> OutputFigure:
    return OutputFigure(
        report=output,
        bars=_histogram_bars(output.histogram),
        dots=_dots(output.pairs),
        width=WIDTH,
        height=HEIGHT,
        counts=list(zip(pairwise(output.histogram.edges), output.histogram.counts, strict=False)),
    )


def _histogram_bars(histogram: Histogram) -> list[geometry.Bar]:
    if not histogram.counts:
        return []
    top, width = max(histogram.counts) or 1, WIDTH / len(histogram.counts)
    return [
        geometry.Bar(
            round(i * width + 1, 1),
            round(HEIGHT * (1 - count / top), 1),
            round(width - 2, 1),
            round(HEIGHT * count / top, 1),
            f"{low:.3g} to {high:.3g}: {count}",
        )
        for i, (count, (low, high)) in enumerate(
            zip(histogram.counts, pairwise(histogram.edges), strict=True)
        )
    ]


def _dots(pairs: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    values = [value for pair in pairs for value in pair]
    low = min(values, default=0.0)
    span = (max(values, default=0.0) - low) or 1.0
    return [
        (round(HEIGHT * (y - low) / span, 1), round(HEIGHT * (1 - (p - low) / span), 1)) for y, p in pairs
    ]
