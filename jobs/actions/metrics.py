"""Stores metric points in columns: each commit adds a small chunk to its series, many small ones become one.

Adding costs the same however long a series is: nothing that is stored already is read or written again until
there are `LOOSE` small chunks, which then are packed together.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from django.db import connection

from jobs.models import Attempt, MetricSeries, Trial
from jobs.queries.chunks import Columns, pack_columns, unpack_columns
from jobs.spec.events import LONGEST_NAME, Metric, Points, Warned

POINTS_PER_CHUNK = 4000
LOOSE = 32
"""How many small chunks a series may have: more make reading slow, fewer make adding slow."""
MOST_SERIES = 2000
"""Of one execution; a runner that makes a name a step would fill the database. Its events have them all."""

_OF_TRIAL = """SELECT id, name, loose FROM jobs_metricseries
    WHERE trial_id = %s AND execution = %s AND attempt = %s"""
_OF_JOB = """SELECT id, name, loose FROM jobs_metricseries
    WHERE trial_id IS NULL AND job_id = %s AND execution = %s AND attempt = %s"""
_ADD = """INSERT INTO jobs_metricchunk (series_id, first_x, last_x, count, data)
    VALUES (%s, %s, %s, %s, %s)"""
_GROW = """UPDATE jobs_metricseries
    SET count = count + %s, last_x = %s, last_value = %s, loose = loose + 1 WHERE id = %s"""
_NEWEST = "SELECT id, data FROM jobs_metricchunk WHERE series_id = %s ORDER BY id DESC LIMIT %s"


class _Place(NamedTuple):
    """Whose series: a trial's execution, or the job itself."""

    trial: int | None
    execution: int


class _Gathered(NamedTuple):
    """Points of one series, as they came."""

    axis: str
    at: list[float]
    values: list[float | None]
    times: list[float]

    def columns(self) -> Columns:
        return np.array([self.at, self.values, self.times], dtype=np.float64)


class _Row(NamedTuple):
    id: int
    loose: int


def store(attempt: Attempt, held: Mapping[int, Trial], said: Iterable[Metric | Points]) -> int:
    """Append points to their series, inside the caller's transaction, which has locked the attempt.

    Args:
        attempt: whose runner measured them.
        held: the trials that the metrics name, by number.
        said: in order; a series keeps the axis that it began with.

    Returns:
        How many series were refused for the first time, because their execution had the most it may have.
    """
    refused = 0
    for place, series in _gather(held, said).items():
        known = _known(attempt, place)
        new = [name for name in series if name not in known]
        room = max(0, MOST_SERIES - len(known))
        begun = _begin(attempt, place, {name: series[name].axis for name in new[:room]})
        refused += len(new[room:]) if room else 0
        _append({row: series[name].columns() for name, row in (known | begun).items() if name in series})
    return refused


def too_many(refused: int) -> Warned:
    """Return what the owner is told, once, of series that `store` refused."""
    message = (
        f"An execution may have {MOST_SERIES} metrics with different names; {refused} more are no "
        "curves. Log what changes its name at each step, or give it one name."
    )
    return Warned(time=time.time(), code="too_many_metrics", message=message)


def _gather(
    held: Mapping[int, Trial], said: Iterable[Metric | Points]
) -> Mapping[_Place, dict[str, _Gathered]]:
    found: dict[_Place, dict[str, _Gathered]] = defaultdict(dict)
    for event in said:
        trial = None if event.trial is None else held[event.trial].pk
        series = found[_Place(trial, event.execution or 0)]
        if isinstance(event, Points):
            for name, column in zip(event.names, event.values, strict=True):
                one = series.setdefault(name, _Gathered(event.x, [], [], []))
                one.at.extend(event.at)
                one.values.extend(column)
                one.times.extend(event.times)
            continue
        for name, x, value, moment in event.points:
            one = series.setdefault(name[:LONGEST_NAME], _Gathered(event.x, [], [], []))
            one.at.append(x)
            one.values.append(value)
            one.times.append(moment)
    return found


def _known(attempt: Attempt, place: _Place) -> dict[str, _Row]:
    """Return the series that there are, by name."""
    trial, execution = place
    of = attempt.job_id if trial is None else trial
    with connection.cursor() as cursor:
        cursor.execute(_OF_JOB if trial is None else _OF_TRIAL, [of, execution, attempt.number])
        return {name: _Row(pk, loose) for pk, name, loose in cursor.fetchall()}


def _begin(attempt: Attempt, place: _Place, axes: Mapping[str, str]) -> dict[str, _Row]:
    """Make new series; each keeps the axis that it began with."""
    made = MetricSeries.objects.bulk_create(
        MetricSeries(
            job_id=attempt.job_id,
            trial_id=place.trial,
            execution=place.execution,
            attempt=attempt.number,
            name=name,
            x=axis,
        )
        for name, axis in axes.items()
    )
    return {series.name: _Row(series.pk, 0) for series in made}


def _append(points: Mapping[_Row, Columns]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(_ADD, [_chunk(row.id, columns) for row, columns in points.items()])
        cursor.executemany(_GROW, [_growth(row.id, columns) for row, columns in points.items()])
    for row in points:
        if row.loose + 1 >= LOOSE:
            _settle(row.id, row.loose + 1)


def _chunk(series: int, columns: Columns) -> tuple[int, float, float, int, bytes]:
    low, high = float(columns[0].min()), float(columns[0].max())
    return series, low, high, columns.shape[1], pack_columns(columns)


def _growth(series: int, columns: Columns) -> tuple[int, float, float | None, int]:
    last = float(columns[1, -1])
    return columns.shape[1], float(columns[0, -1]), last if math.isfinite(last) else None, series


def _settle(series: int, loose: int) -> None:
    """Pack the newest chunks of a series together; all but the last are then full and stay as they are."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [series, loose])
        rows = cursor.fetchall()[::-1]
        cursor.executemany("DELETE FROM jobs_metricchunk WHERE id = %s", [(pk,) for pk, _ in rows])
        joined = np.concatenate([unpack_columns(data) for _, data in rows], axis=1)
        pieces = list(_pieces(joined))
        cursor.executemany(_ADD, [_chunk(series, piece) for piece in pieces])
        rest = int(pieces[-1].shape[1] < POINTS_PER_CHUNK)
        cursor.execute("UPDATE jobs_metricseries SET loose = %s WHERE id = %s", [rest, series])


def _pieces(columns: Columns) -> Iterator[Columns]:
    for start in range(0, columns.shape[1], POINTS_PER_CHUNK):
        yield columns[:, start : start + POINTS_PER_CHUNK]
