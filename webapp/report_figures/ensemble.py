"""Prepares an ensemble's report: its members, what each adds, and how different they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jobs.messages.reports.base import MetricValue
from jobs.messages.reports.ensemble import Candidate, EnsembleReport, MemberPair
from jobs.spec.sections.measures import primary_metric
from webapp.report_figures import geometry
from webapp.report_figures.geometry import SHADES
from webapp.report_figures.intervals import IntervalMethod, methods_of
from webapp.template_context import Context


class MemberRow(NamedTuple):
    """A member, the plain mean or the ensemble, with its metric, its weight and the gain by it."""

    candidate: Candidate
    title: str
    value: MetricValue
    span: geometry.Span
    weight: float | None
    weight_bar: float
    gain: float | None
    gain_bar: float
    gain_css: str
    is_ensemble: bool
    is_best: bool


class MatrixCell(NamedTuple):
    """How often two members disagree, with the shade of the cell."""

    same: bool
    value: float | None
    shade: int


class MatrixRow(NamedTuple):
    """A member with its difference to each member."""

    number: int
    name: str
    title: str
    cells: list[MatrixCell]


@dataclass(frozen=True)
class EnsembleFigures(Context):
    """The figures of an ensemble's report."""

    metric: str
    scale: geometry.Scale
    is_regression: bool
    is_fitted: bool
    is_alone: bool
    harms: bool
    intervals: Sequence[IntervalMethod]
    rows: list[MemberRow]
    matrix: list[MatrixRow]
    pairs: list[tuple[str, str, MemberPair]]


def ensemble_context(report: EnsembleReport) -> EnsembleFigures:
    """Return the variables for `components/reports/ensemble_report.html`."""
    metric, _ = primary_metric(report.task)
    names = [member.member for member in sorted(report.weights, key=lambda member: -member.weight)]
    weights = {member.member: member.weight for member in report.weights}
    gains = {member.member: member.gain for member in report.leave_one_out}
    bounds = [
        value
        for candidate in report.candidates
        for value in (
            candidate.metrics[metric].value,
            candidate.metrics[metric].low,
            candidate.metrics[metric].high,
        )
    ]
    scale = geometry.scale_of(bounds)
    gain_bars = dict(zip(names, geometry.bar_lengths(names, gains.get), strict=True))
    return EnsembleFigures(
        metric=metric,
        scale=scale,
        is_regression=report.task == "regression",
        is_fitted=report.method == "weighted",
        is_alone=sum(weight > 0 for weight in weights.values()) == 1,
        harms=any((gain or 0.0) < 0 for gain in gains.values()),
        intervals=methods_of(candidate.metrics[metric] for candidate in report.candidates),
        rows=[
            MemberRow(
                candidate=candidate,
                title=_title_of(candidate, report),
                value=candidate.metrics[metric],
                span=scale.span(
                    candidate.metrics[metric].value,
                    candidate.metrics[metric].low,
                    candidate.metrics[metric].high,
                ),
                weight=weights.get(candidate.name),
                weight_bar=round(100 * weights.get(candidate.name, 0.0), 1),
                gain=gains.get(candidate.name),
                gain_bar=gain_bars.get(candidate.name, 0.0),
                gain_css="ty-harm" if (gains.get(candidate.name) or 0.0) < 0 else "",
                is_ensemble=candidate.name == "ensemble",
                is_best=candidate.name == report.best_single,
            )
            for candidate in sorted(
                report.candidates, key=lambda candidate: -weights.get(candidate.name, -1.0)
            )
        ],
        matrix=_diversity_matrix(report, names),
        pairs=[(report.title(pair.a), report.title(pair.b), pair) for pair in report.diversity.pairs],
    )


def _title_of(candidate: Candidate, report: EnsembleReport) -> str:
    titles = {"mean": "Plain mean of all members", "ensemble": "Ensemble"}
    return titles.get(candidate.kind) or report.title(candidate.name)


def _diversity_matrix(report: EnsembleReport, names: list[str]) -> list[MatrixRow]:
    """Return a row for each member with its difference to each other member; none if there are many."""
    pairs: dict[frozenset[str], MemberPair] = {frozenset((p.a, p.b)): p for p in report.diversity.pairs}
    top = max((pair.disagreement or 0.0 for pair in pairs.values()), default=0.0) or 1.0

    def cell_of(a: str, b: str) -> MatrixCell:
        value = pairs[frozenset((a, b))].disagreement if a != b else None
        return MatrixCell(a == b, value, round(SHADES * (value or 0.0) / top))

    return [
        MatrixRow(number, a, report.title(a), [cell_of(a, b) for b in names])
        for number, a in enumerate(names, start=1)
    ]
