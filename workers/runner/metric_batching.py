"""Combines `Report.metric` calls into `points` events, encoded as lines."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import orjson

from jobs.messages.events import POINTS_AN_EVENT, Axis
from jobs.spec.sections.measures import LONGEST_NAME


class SeriesKey(NamedTuple):
    """The properties that all series in a `points` event have in common."""

    axis: Axis
    trial: int | None
    execution: int | None


class MetricCall(NamedTuple):
    """One `Report.metric` call: a point for each name, all at the same x."""

    series: SeriesKey
    x: float
    time: float
    names: tuple[str, ...]
    values: tuple[float, ...]


class Table(NamedTuple):
    """Points for several series at the same x: one column per name, one row per call.

    Attributes:
        names: the series.
        x: each call's position on the axis.
        times: when each call was made, in seconds since 1970.
        columns: each series' values.
    """

    names: tuple[str, ...]
    x: list[float]
    times: list[float]
    columns: list[list[float]]


def encode_calls(calls: Iterable[MetricCall]) -> Iterator[bytes]:
    """Return the event lines for `calls`. Each series' points keep their order."""
    by_series: dict[SeriesKey, list[MetricCall]] = defaultdict(list)
    for call in calls:
        if call.names:
            by_series[call.series].append(call)
    for series, series_calls in by_series.items():
        for table in _tables(series_calls):
            yield from _lines(series, table)


def _tables(calls: Sequence[MetricCall]) -> Iterator[Table]:
    """Return one table if all calls have the same names, else one table per name."""
    names = calls[0].names
    if all(call.names == names for call in calls):
        columns = [list(column) for column in zip(*(call.values for call in calls), strict=True)]
        yield Table(names, [call.x for call in calls], [call.time for call in calls], columns)
        return
    single: dict[str, Table] = {}
    for call in calls:
        for name, value in zip(call.names, call.values, strict=True):
            table = single.setdefault(name, Table((name,), [], [], [[]]))
            table.x.append(call.x)
            table.times.append(call.time)
            table.columns[0].append(value)
    yield from single.values()


def _lines(series: SeriesKey, table: Table) -> Iterator[bytes]:
    for left in range(0, len(table.names), POINTS_AN_EVENT):
        names = table.names[left : left + POINTS_AN_EVENT]
        rows = POINTS_AN_EVENT // len(names)
        for top in range(0, len(table.x), rows):
            cut = slice(top, top + rows)
            columns = [column[cut] for column in table.columns[left : left + POINTS_AN_EVENT]]
            yield _line(series, Table(names, table.x[cut], table.times[cut], columns))


def _line(series: SeriesKey, table: Table) -> bytes:
    body = {
        "type": "points",
        "time": table.times[-1],
        "trial": series.trial,
        "execution": series.execution,
        "x": series.axis,
        "names": [name[:LONGEST_NAME] for name in table.names],
        "at": table.x,
        "times": table.times,
        "values": table.columns,  # orjson writes non-finite values as null
    }
    return orjson.dumps(body) + b"\n"
