"""Reads metric series: merges attempts, selects an x range, and reduces the number of points."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from django.db.models import Q, QuerySet
from numpy.typing import NDArray

from jobs.answers.runs.metrics import AttemptStartOut, SeriesOut
from jobs.models import Job, MetricChunk, MetricSeries
from jobs.queries.runs.codec import Columns, unpack_columns

Floats = NDArray[np.float64]


class _Key(NamedTuple):
    job: int
    trial: int | None
    execution: int
    name: str
    x: str


def read_series(
    job: Job,
    *,
    names: Sequence[str] = (),
    trial: int | None = None,
    trials: Sequence[int] = (),
    newest: int | None = None,
    execution: int | None = None,
    max_points: int = 1500,
    start: float | None = None,
    end: float | None = None,
) -> list[SeriesOut]:
    """Return the metric series for a job and its children.

    Args:
        job: the job.
        names: only these metrics; all if empty.
        trial: only this trial's series.
        trials: only these trials' series; all if empty.
        newest: only the series of so many trials that started last, and the series without a trial.
        execution: only this execution's series.
        max_points: longer series are reduced to this many points (last value, min, max).
        start: the smallest x.
        end: the largest x.
    """
    rows = MetricSeries.objects.filter(job__in=[job.pk, *job.descendants.values_list("pk", flat=True)])
    if names:
        rows = rows.filter(name__in=names)
    if trial is not None:
        rows = rows.filter(trial__number=trial)
    if trials:
        rows = rows.filter(trial__number__in=trials)
    if newest is not None:
        latest = job.trials.filter(started__isnull=False).order_by("-number").values_list("pk", flat=True)
        rows = rows.filter(Q(trial=None) | Q(trial__in=list(latest[:newest])))
    if execution is not None:
        rows = rows.filter(execution=execution)
    return merge_series(rows, max_points=max_points, start=start, end=end)


def merge_series(
    rows: QuerySet[MetricSeries],
    *,
    max_points: int,
    start: float | None = None,
    end: float | None = None,
) -> list[SeriesOut]:
    """Merge the attempts of metric series; `read_series` describes the arguments."""
    merged: dict[_Key, list[Floats]] = defaultdict(list)
    # In the order of attempts, so that where two attempts have the same x, the later one's value is last.
    series = list(rows.select_related("trial").order_by("attempt"))
    chunks = chunks_of([row.pk for row in series])
    for row in series:
        key = _Key(row.job_id, row.trial.number if row.trial else None, row.execution, row.name, row.x)
        merged[key] += [_with_attempt(part, row.attempt) for part in chunks[row.pk]]
    # The series of a job have no trial; None cannot be compared.
    keys = sorted(merged, key=lambda key: key._replace(trial=key.trial or 0))
    return [_series_out(key, merged[key], max_points, start, end) for key in keys]


def chunks_of(series: Sequence[int]) -> dict[int, list[Columns]]:
    """Return each series' chunks, in the order in which they were written."""
    chunks: dict[int, list[Columns]] = defaultdict(list)
    for row in MetricChunk.objects.filter(series__in=series).order_by("pk").iterator(chunk_size=200):
        chunks[row.series_id].append(unpack_columns(row.data))
    return chunks


def _with_attempt(columns: Columns, attempt: int) -> Floats:
    """Add the attempt number to points as a fourth column."""
    return np.vstack([columns, np.full(columns.shape[1], attempt)])


def _series_out(
    key: _Key, parts: list[Floats], max_points: int, start: float | None, end: float | None
) -> SeriesOut:
    columns = newest_at_each_x(np.concatenate(parts, axis=1)) if parts else np.empty((4, 0))
    total = columns.shape[1]
    attempts = _attempt_changes(columns)
    inside = (columns[0] >= (-np.inf if start is None else start)) & (
        columns[0] <= (np.inf if end is None else end)
    )
    columns = columns[:, inside]
    if columns.shape[1] > max_points:
        points = _reduce_points(columns, max_points)
    else:
        xs, values, times = columns[0].tolist(), _finite_values(columns[1]), columns[2].tolist()
        points = [[x, v, v, v, time] for x, v, time in zip(xs, values, times, strict=True)]
    series = SeriesOut(
        name=key.name,
        job=key.job,
        trial=key.trial,
        execution=key.execution or None,
        x=key.x,
        total_points=total,
        points=points,
        attempts=attempts,
    )
    return series | {"nonfinite": True} if any(point[1] is None for point in points) else series


def _attempt_changes(columns: Floats) -> list[AttemptStartOut]:
    """Return where along x the attempt changes; one attempt may follow itself after a later one."""
    x, _, time, number = columns
    first = np.flatnonzero(np.diff(number, prepend=0.0))  # attempts are counted from 1
    starts = zip(number[first].tolist(), x[first].tolist(), time[first].tolist(), strict=True)
    return [AttemptStartOut(attempt=int(attempt), x=at, time=moment) for attempt, at, moment in starts]


def newest_at_each_x(columns: Floats) -> Floats:
    """Sort points by x, their first column. If several have the same x, only the last remains."""
    # `np.unique` returns the first of equal values, which in reverse order is the last.
    backwards = columns[:, ::-1]
    _, first = np.unique(backwards[0], return_index=True)
    return backwards[:, first]


def _finite_values(column: Floats) -> list[float | None]:
    """Return a column's values; None for those that are not finite."""
    return [value if math.isfinite(value) else None for value in column.tolist()]


def _reduce_points(columns: Columns, count: int) -> list[list[float | None]]:
    """Return one point for each of `count` equally long parts: x, last value, minimum, maximum, time."""
    first = np.arange(count) * columns.shape[1] // count
    last = np.append(first[1:], columns.shape[1]) - 1
    # `fmin` and `fmax` ignore NaN unless all values of a part are NaN.
    low, high = np.fmin.reduceat(columns[1], first), np.fmax.reduceat(columns[1], first)
    x, value, time = columns[:3, last]
    points = zip(
        x.tolist(),
        _finite_values(value),
        _finite_values(low),
        _finite_values(high),
        time.tolist(),
        strict=True,
    )
    return [list(point) for point in points]
