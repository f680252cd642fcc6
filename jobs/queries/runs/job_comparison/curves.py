"""Reads the learning curves of several jobs and versions."""

from collections.abc import Sequence

from django.db.models import Q, QuerySet

from jobs.answers.runs.job_comparison import ComparedSeriesOut, CurveSourceOut
from jobs.models import MetricSeries
from jobs.queries.runs import metrics

MAX_POINTS = 500
"""The most points of one curve. Fifty curves of this length are one quick answer."""


def curve_names(sources: Sequence[CurveSourceOut | None]) -> list[str]:
    """List the metrics with curves over epochs, validation metrics first."""
    rows = _series(sources).filter(x="epoch")
    names = set(rows.values_list("name", flat=True).distinct())
    return sorted(names, key=lambda name: (not name.startswith("val_"), name))


def read_curves(subjects: Sequence[tuple[str, CurveSourceOut | None]], name: str) -> list[ComparedSeriesOut]:
    """Return the subjects' curves of one metric, in their order; several executions are several curves.

    Args:
        subjects: names, and whose curve represents each.
        name: of the metric.
    """
    rows = _series([source for _, source in subjects]).filter(name=name)
    found = metrics.merge_series(rows, max_points=MAX_POINTS)
    return [
        ComparedSeriesOut(**series, subject=label, place=place)
        for place, (label, source) in enumerate(subjects)
        for series in found
        if source is not None and (series["job"], series["trial"]) == (source["job"], source["trial"])
    ]


def _series(sources: Sequence[CurveSourceOut | None]) -> QuerySet[MetricSeries]:
    wanted = Q(pk__in=[])
    for source in sources:
        if source is not None:
            trial = Q(trial__number=source["trial"]) if source["trial"] is not None else Q(trial=None)
            wanted |= Q(job=source["job"]) & trial
    return MetricSeries.objects.filter(wanted)
