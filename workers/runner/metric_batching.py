"""Metrics that come faster than anybody looks travel together: calls in, `points` events out as lines."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import orjson

from jobs.contracts.events import LONGEST_NAME, POINTS_AN_EVENT, Axis


class Series(NamedTuple):
    """What some series share: they stand in one table only with their like."""

    axis: Axis
    trial: int | None
    execution: int | None


class Call(NamedTuple):
    """One call of `Report.metric`: a point for each name, all at one x."""

    of: Series
    at: float
    time: float
    names: tuple[str, ...]
    values: tuple[float, ...]


class Table(NamedTuple):
    """Points of some series at the same places: a column a name, a row a call."""

    names: tuple[str, ...]
    at: list[float]
    times: list[float]
    columns: list[list[float]]


def lines_of(calls: Iterable[Call]) -> Iterator[bytes]:
    """Return event lines that say what the calls said; the points of each series keep their order."""
    alike: dict[Series, list[Call]] = defaultdict(list)
    for call in calls:
        if call.names:
            alike[call.of].append(call)
    for of, said in alike.items():
        for table in _tables(said):
            yield from _lines(of, table)


def _tables(calls: Sequence[Call]) -> Iterator[Table]:
    """Return one table where all calls have the same names, else one a series."""
    names = calls[0].names
    if all(call.names == names for call in calls):
        columns = [list(column) for column in zip(*(call.values for call in calls), strict=True)]
        yield Table(names, [call.at for call in calls], [call.time for call in calls], columns)
        return
    single: dict[str, Table] = {}
    for call in calls:
        for name, value in zip(call.names, call.values, strict=True):
            table = single.setdefault(name, Table((name,), [], [], [[]]))
            table.at.append(call.at)
            table.times.append(call.time)
            table.columns[0].append(value)
    yield from single.values()


def _lines(of: Series, table: Table) -> Iterator[bytes]:
    for left in range(0, len(table.names), POINTS_AN_EVENT):
        names = table.names[left : left + POINTS_AN_EVENT]
        rows = POINTS_AN_EVENT // len(names)
        for top in range(0, len(table.at), rows):
            cut = slice(top, top + rows)
            columns = [column[cut] for column in table.columns[left : left + POINTS_AN_EVENT]]
            yield _line(of, Table(names, table.at[cut], table.times[cut], columns))


def _line(of: Series, table: Table) -> bytes:
    body = {
        "type": "points",
        "time": table.times[-1],
        "trial": of.trial,
        "execution": of.execution,
        "x": of.axis,
        "names": [name[:LONGEST_NAME] for name in table.names],
        "at": table.at,
        "times": table.times,
        "values": table.columns,  # what is not finite becomes null
    }
    return orjson.dumps(body) + b"\n"
