"""Stores metric points in columns: each commit appends a small chunk to its series.

Appending costs the same however long a series is: stored chunks are not read or written again until there are
`LOOSE` small chunks, which are then compacted.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from django.db import connection

from jobs.messages.events import Metric, Points, Warned
from jobs.models import Attempt, MetricSeries, Trial
from jobs.queries.runs.codec import Columns, pack_columns, unpack_columns
from jobs.spec.sections.measures import LONGEST_NAME

POINTS_PER_CHUNK = 4000
LOOSE = 32
"""How many small chunks a series may have: more make reading slow, fewer make appending slow."""
MAX_SERIES = 2000
"""Per execution: a runner that creates a new name at each step would fill the database."""

_OF_TRIALS = """SELECT id, trial_id, execution, name, loose FROM jobs_metricseries
    WHERE attempt = %s AND trial_id IN ({})"""
_OF_JOB = """SELECT id, execution, name, loose FROM jobs_metricseries
    WHERE trial_id IS NULL AND job_id = %s AND attempt = %s"""
_ADD = """INSERT INTO jobs_metricchunk (series_id, first_x, last_x, count, data)
    VALUES (%s, %s, %s, %s, %s)"""
_GROW = """UPDATE jobs_metricseries
    SET count = count + %s, last_x = %s, last_value = %s, loose = loose + 1 WHERE id = %s"""
_NEWEST = "SELECT id, data FROM jobs_metricchunk WHERE series_id = %s ORDER BY id DESC LIMIT %s"


_Chunk = tuple[int, float, float, int, bytes]
"""A row in `_ADD`: series, first and last x, number of points, data."""


class _Owner(NamedTuple):
    """A series' owner: a trial's execution, or the job itself."""

    trial: int | None
    execution: int


class _Points(NamedTuple):
    """One series' new points, in the order received."""

    axis: str
    at: list[float]
    values: list[float | None]
    times: list[float]

    def columns(self) -> Columns:
        return np.array([self.at, self.values, self.times], dtype=np.float64)


class Stored(NamedTuple):
    """The counts that `store_points` returns.

    Attributes:
        refused: how many series were refused because their execution has reached the limit. Only the first
            refusal is counted.
        bytes: by how many bytes the stored chunks have grown. A compaction may make it negative.
    """

    refused: int
    bytes: int


class _Row(NamedTuple):
    id: int
    loose: int


def store_points(attempt: Attempt, trials: Mapping[int, Trial], events: Iterable[Metric | Points]) -> Stored:
    """Append points to their series, inside the caller's transaction, which has locked the attempt.

    Args:
        attempt: the attempt whose runner reported the points.
        trials: the trials that the events name, by number.
        events: the events in order. A series keeps the axis of its first point.
    """
    points = _gather_points(trials, events)
    stored = _stored_series(attempt, points)
    refused = 0
    new: dict[tuple[_Owner, str], _Points] = {}
    grown: dict[_Row, Columns] = {}
    for owner, series in points.items():
        stored_series = stored[owner]
        begun = [name for name in series if name not in stored_series]
        room = max(0, MAX_SERIES - len(stored_series))
        # Without room an earlier call has refused series: a second warning would repeat the first.
        refused += len(begun[room:]) if room else 0
        new |= {(owner, name): series[name] for name in begun[:room]}
        grown |= {stored_series[name]: series[name].columns() for name in series if name in stored_series}
    return Stored(refused, _create_series(attempt, new) + _append_chunks(grown))


def too_many_warning(refused: int) -> Warned:
    """Return the warning about series that `store_points` refused."""
    message = (
        f"An execution may have {MAX_SERIES} metrics with different names; {refused} more were not stored "
        "and have no curves. Use one name for a metric whose name changes at each step."
    )
    return Warned(time=time.time(), code="too_many_metrics", message=message)


def _gather_points(
    trials: Mapping[int, Trial], events: Iterable[Metric | Points]
) -> Mapping[_Owner, dict[str, _Points]]:
    """Collect the events' points by owner and name."""
    points_by_owner: dict[_Owner, dict[str, _Points]] = defaultdict(dict)
    for event in events:
        trial = None if event.trial is None else trials[event.trial].pk
        series = points_by_owner[_Owner(trial, event.execution or 0)]
        if isinstance(event, Points):
            for name, column in zip(event.names, event.values, strict=True):
                points = series.setdefault(name, _Points(event.x, [], [], []))
                points.at.extend(event.at)
                points.values.extend(column)
                points.times.extend(event.times)
            continue
        for name, x, value, moment in event.points:
            points = series.setdefault(name[:LONGEST_NAME], _Points(event.x, [], [], []))
            points.at.append(x)
            points.values.append(value)
            points.times.append(moment)
    return points_by_owner


def _stored_series(attempt: Attempt, owners: Iterable[_Owner]) -> Mapping[_Owner, dict[str, _Row]]:
    """Return these owners' stored series by name, with one statement for all trials."""
    series_by_owner: dict[_Owner, dict[str, _Row]] = defaultdict(dict)
    trials = sorted({owner.trial for owner in owners if owner.trial is not None})
    with connection.cursor() as cursor:
        if trials:
            cursor.execute(_OF_TRIALS.format(", ".join(["%s"] * len(trials))), [attempt.number, *trials])
            for pk, trial, execution, name, loose in cursor.fetchall():
                series_by_owner[_Owner(trial, execution)][name] = _Row(pk, loose)
        if any(owner.trial is None for owner in owners):
            cursor.execute(_OF_JOB, [attempt.job_id, attempt.number])
            for pk, execution, name, loose in cursor.fetchall():
                series_by_owner[_Owner(None, execution)][name] = _Row(pk, loose)
    return series_by_owner


def _create_series(attempt: Attempt, new: Mapping[tuple[_Owner, str], _Points]) -> int:
    """Create new series with their first chunks. Return how many bytes the chunks have."""
    if not new:
        return 0
    columns = [series.columns() for series in new.values()]
    rows = MetricSeries.objects.bulk_create(
        MetricSeries(
            job_id=attempt.job_id,
            trial_id=owner.trial,
            execution=owner.execution,
            attempt=attempt.number,
            name=name,
            x=series.axis,
            count=points.shape[1],
            last_x=float(points[0, -1]),
            last_value=_last_value(points),
            loose=1,
        )
        for ((owner, name), series), points in zip(new.items(), columns, strict=True)
    )
    with connection.cursor() as cursor:
        chunks = [_chunk_row(row.pk, points) for row, points in zip(rows, columns, strict=True)]
        cursor.executemany(_ADD, chunks)
    return _bytes_of_chunks(chunks)


def _append_chunks(grown: Mapping[_Row, Columns]) -> int:
    """Append a chunk to each series. Return by how many bytes they have grown.

    A series with too many small chunks is compacted.
    """
    if not grown:
        return 0
    growth = [
        (columns.shape[1], float(columns[0, -1]), _last_value(columns), row.id)
        for row, columns in grown.items()
    ]
    chunks = [_chunk_row(row.id, columns) for row, columns in grown.items()]
    with connection.cursor() as cursor:
        cursor.executemany(_ADD, chunks)
        cursor.executemany(_GROW, growth)
    full = [row for row in grown if row.loose + 1 >= LOOSE]
    return _bytes_of_chunks(chunks) + sum(_compact_series(row.id, row.loose + 1) for row in full)


def _bytes_of_chunks(chunks: Iterable[_Chunk]) -> int:
    return sum(len(chunk[-1]) for chunk in chunks)


def _chunk_row(series: int, columns: Columns) -> _Chunk:
    low, high = float(columns[0].min()), float(columns[0].max())
    return series, low, high, columns.shape[1], pack_columns(columns)


def _last_value(columns: Columns) -> float | None:
    last = float(columns[1, -1])
    return last if math.isfinite(last) else None


def _compact_series(series: int, loose: int) -> int:
    """Merge a series' small chunks. Return by how many bytes it has grown, mostly a negative number.

    All but the last chunk are then full and do not change again.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [series, loose])
        rows = cursor.fetchall()[::-1]
        cursor.executemany("DELETE FROM jobs_metricchunk WHERE id = %s", [(pk,) for pk, _ in rows])
        joined = np.concatenate([unpack_columns(data) for _, data in rows], axis=1)
        pieces = [
            joined[:, start : start + POINTS_PER_CHUNK]
            for start in range(0, joined.shape[1], POINTS_PER_CHUNK)
        ]
        merged = [_chunk_row(series, piece) for piece in pieces]
        cursor.executemany(_ADD, merged)
        # A last piece that is not full remains small: the next compaction merges it again.
        rest = int(pieces[-1].shape[1] < POINTS_PER_CHUNK)
        cursor.execute("UPDATE jobs_metricseries SET loose = %s WHERE id = %s", [rest, series])
    return _bytes_of_chunks(merged) - sum(len(data) for _, data in rows)
