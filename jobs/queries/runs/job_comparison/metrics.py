"""Compares the metrics of several jobs and versions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from jobs.answers.runs.job_comparison import MeasuredPart, MeasuredValueOut, MetricRowOut
from jobs.models import Job, JobArtifact
from jobs.queries.runs import model_reports
from jobs.queries.runs.job_comparison.scores import Score
from jobs.queries.runs.job_comparison.subjects import Subject
from jobs.spec.sections import measures

type Direction = Literal["min", "max"]


class Measured(NamedTuple):
    """A subject's metrics with their intervals, by part of the data."""

    test: dict[str, MeasuredValueOut]
    validation: dict[str, MeasuredValueOut]
    test_rows: int | None


def read_measured(subjects: Sequence[Subject]) -> list[Measured]:
    """Return each subject's metrics. Intervals come from the evaluations of the jobs that made the models."""
    sources = {
        subject.model_job.pk: subject.model_job for subject in subjects if subject.model_job is not None
    }
    reports = _evaluations(sources)
    return [_measured(subject, reports) for subject in subjects]


def _evaluations(sources: Mapping[int, Job]) -> dict[int, Any]:
    """Return the evaluation reports of jobs, by the job's key, with one query."""
    rows = JobArtifact.objects.filter(job__in=sources, role="evaluation", name__endswith=".json")
    newest = {row.job_id: row for row in rows.order_by("attempt", "pk")}
    stored = {
        pk: model_reports.StoredReport(sources[pk], "evaluation", row.artifact_id)
        for pk, row in newest.items()
    }
    return {
        pk: report for pk, row in stored.items() if (report := model_reports.read_report(row)) is not None
    }


def _measured(subject: Subject, reports: Mapping[int, Any]) -> Measured:
    job = subject.model_job
    report = reports.get(job.pk) if job is not None else None
    results = job.results if job is not None else None
    stored = subject.version.metrics if subject.version is not None else results.metrics if results else {}
    test = _values(stored.get("test"))
    if report is not None:
        test |= _with_intervals(test, report.metrics)
    rows = report.rows if report is not None else results.test_rows if results is not None else None
    return Measured(test, _values(stored.get("validation")), rows)


def _values(metrics: Any) -> dict[str, MeasuredValueOut]:
    """Return stored metrics, which are numbers or objects with a value, without those that are not finite."""
    values: dict[str, MeasuredValueOut] = {}
    for name, metric in (metrics or {}).items():
        entry = metric if isinstance(metric, Mapping) else {"value": metric}
        value = _finite(entry.get("value"))
        if value is not None:
            values[name] = MeasuredValueOut(
                value=value, low=_finite(entry.get("low")), high=_finite(entry.get("high"))
            )
    return values


def _with_intervals(test: Mapping[str, MeasuredValueOut], metrics: Any) -> dict[str, MeasuredValueOut]:
    """Return the values of a report that agree with the stored ones: another file may have been measured."""
    return {
        name: MeasuredValueOut(value=value["value"], low=metrics[name].low, high=metrics[name].high)
        for name, value in test.items()
        if name in metrics
        and metrics[name].value is not None
        and math.isclose(metrics[name].value, value["value"])
    }


def _finite(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def compare_metrics(
    measured: Sequence[Measured], scores: Sequence[Score | None], groups: Sequence[str]
) -> list[MetricRowOut]:
    """Return a row for each metric: scores of objectives, then metrics on test and on validation rows.

    Args:
        measured: the subjects' metrics.
        scores: their scores.
        groups: the letters of their rows. The best value is marked only among the same rows.
    """
    directions = _directions(scores)
    rows = [_score_row(name, direction, scores, groups) for name, direction in directions.items()]
    for part in ("test", "validation"):
        by_subject = [getattr(each, part) for each in measured]
        for name in dict.fromkeys(name for metrics in by_subject for name in metrics):
            values = [metrics.get(name) for metrics in by_subject]
            direction = directions.get(f"val_{name}", measures.direction(name))
            direction = measures.EVALUATION_METRICS.get(name, direction) if part == "test" else direction
            rows.append(_row(part, name, direction, values, groups))
    return rows


def _directions(scores: Sequence[Score | None]) -> dict[str, Direction | None]:
    """Return the metrics of the objectives with their direction; None if subjects contradict each other."""
    directions: dict[str, Direction | None] = {}
    for score in scores:
        if score is not None and directions.setdefault(score.metric, score.direction) != score.direction:
            directions[score.metric] = None
    return directions


def _score_row(
    name: str, direction: Direction | None, scores: Sequence[Score | None], groups: Sequence[str]
) -> MetricRowOut:
    values = [
        MeasuredValueOut(value=score.value, low=None, high=None)
        if score is not None and score.metric == name and score.value is not None
        else None
        for score in scores
    ]
    return _row("score", name, direction, values, groups)


def _row(
    part: MeasuredPart,
    name: str,
    direction: Direction | None,
    values: list[MeasuredValueOut | None],
    groups: Sequence[str],
) -> MetricRowOut:
    used = {group for group, value in zip(groups, values, strict=True) if value is not None}
    is_comparable = len(used) == 1 and "" not in used
    best = _best(values, direction) if is_comparable and direction is not None else []
    is_close = bool(best) and _overlaps(values, best)
    return MetricRowOut(part=part, name=name, direction=direction, values=values, best=best, close=is_close)


def _best(values: Sequence[MeasuredValueOut | None], direction: Direction) -> list[int]:
    numbers = {at: value["value"] for at, value in enumerate(values) if value is not None}
    if len(set(numbers.values())) < 2:
        return []
    best = (max if direction == "max" else min)(numbers.values())
    return [at for at, number in numbers.items() if number == best]


def _overlaps(values: Sequence[MeasuredValueOut | None], best: Sequence[int]) -> bool:
    """Return whether the interval of another value overlaps with that of the best one."""
    leader = values[best[0]]
    if leader is None or leader["low"] is None or leader["high"] is None:
        return False
    low, high = leader["low"], leader["high"]
    return any(
        value["low"] <= high and value["high"] >= low
        for at, value in enumerate(values)
        if at not in best and value is not None and value["low"] is not None and value["high"] is not None
    )
