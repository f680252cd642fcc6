"""Stores metric points as compressed columns, one growing chunk a series."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from django.db.models import Q

from jobs.models import Attempt, MetricChunk, MetricSeries, Trial
from jobs.queries.chunks import Columns, pack_columns, unpack_columns
from jobs.spec.events import Metric, Point

POINTS_PER_CHUNK = 2000


class _Key(NamedTuple):
    trial: int
    execution: int
    name: str


def _columns(points: Sequence[Point]) -> Columns:
    rows = [(x, math.nan if value is None else value, time) for _, x, value, time in points]
    return np.array(rows, dtype=np.float64).T


def store(attempt: Attempt, held: Mapping[int, Trial], metrics: Iterable[Metric]) -> None:
    """Append points to their series, inside the caller's transaction, which has locked the attempt.

    Args:
        attempt: whose runner measured them.
        held: the trials that the metrics name, by number.
        metrics: in order; a series keeps the axis that it began with.
    """
    points: dict[_Key, list[Point]] = defaultdict(list)
    axes: dict[_Key, str] = {}
    for metric in metrics:
        for point in metric.points:
            key = _Key(metric.trial or 0, metric.execution or 0, point[0][:200])
            points[key].append(point)
            axes.setdefault(key, metric.x)
    if not points:
        return
    known = _known(attempt, {number: held[number] for number in {key.trial for key in points} if number})
    for key in points.keys() & known.keys():
        _append(known[key], _columns(points[key]))
    _begin(attempt, held, {key: _columns(points[key]) for key in points if key not in known}, axes)


def _known(attempt: Attempt, named: Mapping[int, Trial]) -> dict[_Key, MetricSeries]:
    """Return the series that there are of this attempt, for these trials and for none."""
    numbers = {trial.pk: number for number, trial in named.items()}
    of_these = Q(trial__in=numbers) | Q(trial=None)
    rows = MetricSeries.objects.filter(of_these, job_id=attempt.job_id, attempt=attempt.number)
    return {_Key(numbers[row.trial_id] if row.trial_id else 0, row.execution, row.name): row for row in rows}


def _begin(
    attempt: Attempt, held: Mapping[int, Trial], new: Mapping[_Key, Columns], axes: Mapping[_Key, str]
) -> None:
    """Make new series with their first chunks: two statements, however many there are."""
    series = MetricSeries.objects.bulk_create(
        MetricSeries(
            job_id=attempt.job_id,
            trial=held.get(key.trial),
            execution=key.execution,
            attempt=attempt.number,
            name=key.name,
            x=axes[key],
            count=columns.shape[1],
            last_x=float(columns[0, -1]),
            last_value=_last_value(columns),
        )
        for key, columns in new.items()
    )
    MetricChunk.objects.bulk_create(
        _fill(MetricChunk(series=made), columns) for made, columns in zip(series, new.values(), strict=True)
    )


def _last_value(columns: Columns) -> float | None:
    last = float(columns[1, -1])
    return last if math.isfinite(last) else None


def _fill(chunk: MetricChunk, columns: Columns) -> MetricChunk:
    chunk.first_x, chunk.last_x = float(columns[0].min()), float(columns[0].max())
    chunk.count = columns.shape[1]
    chunk.data = pack_columns(columns)
    return chunk


def _append(series: MetricSeries, columns: Columns) -> None:
    chunk = series.chunks.order_by("-pk").first() if series.count else None
    if chunk is None or chunk.count >= POINTS_PER_CHUNK:
        chunk = MetricChunk(series=series)
        joined = columns
    else:
        joined = np.concatenate([unpack_columns(chunk.data), columns], axis=1)
    _fill(chunk, joined).save()
    series.count += columns.shape[1]
    series.last_x = float(columns[0, -1])
    series.last_value = _last_value(columns)
    series.save(update_fields=["count", "last_x", "last_value"])
