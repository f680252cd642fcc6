"""Stores metric points as compressed columns, one growing chunk a series."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from jobs.models import Attempt, MetricChunk, MetricSeries
from jobs.queries.chunks import Columns, pack_columns, unpack_columns
from jobs.spec.events import Metric, Point

POINTS_PER_CHUNK = 2000


class _Key(NamedTuple):
    execution: int
    name: str
    x: str


def _columns(points: Sequence[Point]) -> Columns:
    rows = [(x, math.nan if value is None else value, time) for _, x, value, time in points]
    return np.array(rows, dtype=np.float64).T


def store(attempt: Attempt, metrics: Iterable[Metric]) -> None:
    """Append points to their series, inside the caller's transaction."""
    by_series: dict[_Key, list[Point]] = defaultdict(list)
    for metric in metrics:
        for point in metric.points:
            by_series[_Key(metric.execution or 0, point[0][:200], metric.x)].append(point)
    for key, points in sorted(by_series.items()):
        _append(_series(attempt, key), _columns(points))


def _series(attempt: Attempt, key: _Key) -> MetricSeries:
    series, _ = MetricSeries.objects.get_or_create(
        job_id=attempt.job_id,
        trial=attempt.trial,
        execution=key.execution,
        attempt=attempt.number,
        name=key.name,
        defaults={"x": key.x},
    )
    return series


def _append(series: MetricSeries, columns: Columns) -> None:
    chunk = series.chunks.order_by("-pk").first() if series.count else None
    if chunk is None or chunk.count >= POINTS_PER_CHUNK:
        chunk = MetricChunk(series=series)
        joined = columns
    else:
        joined = np.concatenate([unpack_columns(chunk.data), columns], axis=1)
    chunk.first_x, chunk.last_x = float(joined[0].min()), float(joined[0].max())
    chunk.count = joined.shape[1]
    chunk.data = pack_columns(joined)
    chunk.save()
    series.count += columns.shape[1]
    series.last_x = float(columns[0, -1])
    last = float(columns[1, -1])
    series.last_value = last if math.isfinite(last) else None
    series.save(update_fields=["count", "last_x", "last_value"])
