"""Compares jobs, experiments and model versions side by side; the address names them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.http import HttpResponse, QueryDict
from django.urls import path

from jobs.answers.runs.job_comparison import ComparisonOut, SubjectOut
from jobs.queries.runs.job_comparison.comparison import comparison_out
from jobs.queries.runs.job_comparison.requested import MAX_SUBJECTS, read_requested
from webapp.pages.runs.comparison_rows import Row, Section, fact_rows, metric_rows, setting_sections
from webapp.pages.shortcuts import Crumbs, Request, crumbs, page, render_page, url, valid_choice
from webapp.report_figures.trade_off import Point, TradeOff, draw_trade_off
from webapp.template_context import Context
from webapp.templatetags import words

NAMES = {"job": "job", "experiment": "experiment", "version": "version"}
"""The parameters of the address."""


class Column(NamedTuple):
    """A subject with its number, its page, and the address of the comparison without it."""

    number: int
    subject: SubjectOut
    url: str
    without: str


class Costs(NamedTuple):
    """A metric against a cost: a chart, or a sentence why there is none."""

    title: str
    chart: TradeOff | None
    missing: str


@dataclass(frozen=True)
class ComparePage(Context):
    """Jobs, experiments and versions side by side.

    Attributes:
        comparison: the answer.
        columns: one for each subject.
        facts: rows about the subjects.
        metrics: rows of metrics by part.
        settings: rows of settings that differ, by section of the form.
        equal: rows of settings that are equal.
        measures: the metrics that the charts of costs can show, as key and label.
        measure: the key of the one that they show.
        costs: the metric against size and latency.
        query: the address's query without settings of charts.
        most: the most subjects.
    """

    comparison: ComparisonOut
    columns: list[Column]
    facts: list[Row]
    metrics: list[Section]
    settings: list[Section]
    equal: list[Section]
    equal_count: int
    measures: list[tuple[str, str]]
    measure: str
    costs: list[Costs]
    query: str
    most: int
    crumbs: Crumbs


@page
def compare(request: Request) -> HttpResponse:
    """Show the requested jobs, experiments and versions that the user may see."""
    lists = {name: request.GET.getlist(name) for name in NAMES}
    requested = read_requested(lists["job"], lists["experiment"], lists["version"])
    comparison = comparison_out(request.user, requested)
    subjects = comparison["subjects"]
    measures = _measures(comparison)
    measure = valid_choice(request.GET.get("metric"), [key for key, _ in measures], _first(measures))
    context = ComparePage(
        comparison=comparison,
        columns=_columns(subjects),
        facts=fact_rows(subjects),
        metrics=metric_rows(comparison["metrics"]),
        settings=setting_sections(comparison["differing"]),
        equal=setting_sections(comparison["equal"]),
        equal_count=len(comparison["equal"]),
        measures=measures,
        measure=measure,
        costs=_costs(comparison, measure),
        query=_query(subjects),
        most=MAX_SUBJECTS,
        crumbs=crumbs(("Jobs", url("jobs")), "Compare"),
    )
    return render_page(request, "runs/compare.html", context)


def _first(measures: Sequence[tuple[str, str]]) -> str:
    return measures[0][0] if measures else ""


def _key(subject: SubjectOut) -> tuple[str, str]:
    """Return the parameter of the address that names a subject."""
    if subject["kind"] == "version":
        return "version", f"{subject['model']}:{subject['version']}"
    return subject["kind"], str(subject["job"] if subject["kind"] == "job" else subject["experiment"])


def _query(subjects: Sequence[SubjectOut]) -> str:
    query = QueryDict(mutable=True)
    for subject in subjects:
        query.appendlist(*_key(subject))
    return query.urlencode(safe=":")


def _columns(subjects: Sequence[SubjectOut]) -> list[Column]:
    return [
        Column(
            at + 1,
            subject,
            _page_of(subject),
            f"{url('compare')}?{_query([*subjects[:at], *subjects[at + 1 :]])}",
        )
        for at, subject in enumerate(subjects)
    ]


def _page_of(subject: SubjectOut) -> str:
    if subject["kind"] == "version":
        return url("version", subject["model"], subject["version"])
    if subject["kind"] == "experiment":
        return url("experiment", subject["project"], subject["experiment"])
    return url("job", subject["job"])


def _measures(comparison: ComparisonOut) -> list[tuple[str, str]]:
    """Return the metrics that two subjects have: first those on test rows."""
    order = ("test", "score", "validation")
    rows = sorted(comparison["metrics"], key=lambda row: order.index(row["part"]))
    return [
        (f"{row['part']}:{row['name']}", f"{row['name']}, {PARTS[row['part']]}")
        for row in rows
        if sum(value is not None for value in row["values"]) > 1
    ]


PARTS = {"test": "test rows", "score": "best score of the objective", "validation": "validation rows"}


def _costs(comparison: ComparisonOut, measure: str) -> list[Costs]:
    row = next((each for each in comparison["metrics"] if f"{each['part']}:{each['name']}" == measure), None)
    values: Sequence[Any] = row["values"] if row is not None else ()
    return [
        _cost("Size of the model file", "bytes", "", words.byte_size, comparison["subjects"], values),
        _cost(
            "Latency of one row, 95th percentile",
            "latency_ms",
            " Gates measure it when a promotion is requested, and quantizations measure it too.",
            lambda cost: f"{words.number(cost, 3)} ms",
            comparison["subjects"],
            values,
        ),
    ]


def _cost(
    title: str, name: str, hint: str, in_words: Any, subjects: Sequence[SubjectOut], values: Sequence[Any]
) -> Costs:
    points = [
        Point(at + 1, subject["name"], cost, value["value"], value["low"], value["high"])
        for at, (subject, value) in enumerate(zip(subjects, values, strict=False))
        if value is not None and (cost := _number(subject, name)) is not None
    ]
    if len(points) < 2:
        return Costs(title, None, f"Fewer than two of them have both this figure and the metric.{hint}")
    return Costs(title, draw_trade_off(points, in_words, lambda value: words.number(value, 3)), "")


def _number(subject: SubjectOut, name: str) -> float | None:
    value = subject["bytes"] if name == "bytes" else subject["latency_ms"]
    return None if value is None else float(value)


urls = [path("compare", compare, name="compare")]
