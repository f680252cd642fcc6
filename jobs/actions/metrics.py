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

from jobs.contracts.events import LONGEST_NAME, Metric, Points, Warned
from jobs.models import Attempt, MetricSeries, Trial
from jobs.queries.codec import Columns, pack_columns, unpack_columns

POINTS_PER_CHUNK = 4000
LOOSE = 32
"""How many small chunks a series may have: more make reading slow, fewer make adding slow."""
MOST_SERIES = 2000
"""Of one execution; a runner that makes a name a step would fill the database. Its events have them all."""

_OF_TRIALS = """SELECT id, trial_id, execution, name, loose FROM jobs_metricseries
    WHERE attempt = %s AND trial_id IN ({})"""
_OF_JOB = """SELECT id, execution, name, loose FROM jobs_metricseries
    WHERE trial_id IS NULL AND job_id = %s AND attempt = %s"""
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
    found = _gather(held, said)
    known = _known(attempt, found)
    refused = 0
    new: dict[tuple[_Place, str], _Gathered] = {}
    grown: dict[_Row, Columns] = {}
    for place, series in found.items():
        there = known[place]
        begun = [name for name in series if name not in there]
        room = max(0, MOST_SERIES - len(there))
        refused += len(begun[room:]) if room else 0
        new |= {(place, name): series[name] for name in begun[:room]}
        grown |= {there[name]: series[name].columns() for name in series if name in there}
    _begin(attempt, new)
    _append(grown)
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


def _known(attempt: Attempt, places: Iterable[_Place]) -> Mapping[_Place, dict[str, _Row]]:
    """Return the series that there are at these places, by name: one statement for all trials together."""
    known: dict[_Place, dict[str, _Row]] = defaultdict(dict)
    trials = sorted({place.trial for place in places if place.trial is not None})
    with connection.cursor() as cursor:
        if trials:
            cursor.execute(_OF_TRIALS.format(", ".join(["%s"] * len(trials))), [attempt.number, *trials])
            for pk, trial, execution, name, loose in cursor.fetchall():
                known[_Place(trial, execution)][name] = _Row(pk, loose)
        if any(place.trial is None for place in places):
            cursor.execute(_OF_JOB, [attempt.job_id, attempt.number])
            for pk, execution, name, loose in cursor.fetchall():
                known[_Place(None, execution)][name] = _Row(pk, loose)
    return known


def _begin(attempt: Attempt, new: Mapping[tuple[_Place, str], _Gathered]) -> None:
    """Make new series with their first chunks; each keeps the axis that it began with."""
    columns = [series.columns() for series in new.values()]
    made = MetricSeries.objects.bulk_create(
        MetricSeries(
            job_id=attempt.job_id,
            trial_id=place.trial,
            execution=place.execution,
            attempt=attempt.number,
            name=name,
            x=series.axis,
            count=points.shape[1],
            last_x=float(points[0, -1]),
            last_value=_last_value(points),
            loose=1,
        )
        for ((place, name), series), points in zip(new.items(), columns, strict=True)
    )
    with connection.cursor() as cursor:
        chunks = [_chunk(row.pk, points) for row, points in zip(made, columns, strict=True)]
        cursor.executemany(_ADD, chunks)


def _append(grown: Mapping[_Row, Columns]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(_ADD, [_chunk(row.id, columns) for row, columns in grown.items()])
        cursor.executemany(_GROW, [_growth(row.id, columns) for row, columns in grown.items()])
    for row in grown:
        if row.loose + 1 >= LOOSE:
            _settle(row.id, row.loose + 1)


def _chunk(series: int, columns: Columns) -> tuple[int, float, float, int, bytes]:
    low, high = float(columns[0].min()), float(columns[0].max())
    return series, low, high, columns.shape[1], pack_columns(columns)


def _growth(series: int, columns: Columns) -> tuple[int, float, float | None, int]:
    return columns.shape[1], float(columns[0, -1]), _last_value(columns), series


def _last_value(columns: Columns) -> float | None:
    last = float(columns[1, -1])
    return last if math.isfinite(last) else None


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
