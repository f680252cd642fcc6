"""Which trial ran when and where: the attempts of a search as columns, packed into lanes."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jobs.models import Attempt, Job, Worker

Span = tuple[int, float, float]
"""Whose it is, and from when to when, in seconds."""


class Bar(NamedTuple):
    """One trial in one attempt, in the order of the answer's columns."""

    trial: int
    attempt: int
    worker: int
    lane: int
    start: float
    end: float
    outcome: str
    resumed_from: int | None


def read(search: Job, *, now: dt.datetime) -> dict[str, Any]:
    """Return the attempts at a search's trials, those that still run up to `now`.

    Returns:
        Columns `trial`, `attempt`, `worker` (an index into `workers`), `lane` (its row under that worker),
        `start`, `end` (seconds since 1970), `outcome` (empty while it runs), `resumed_from`.
    """
    rows = list(search.attempts.order_by("assigned", "pk"))
    names = Worker.objects.in_bulk({row.worker_id for row in rows})
    order = sorted(names, key=lambda pk: (names[pk].name, pk))
    spans = [_span(row, now) for row in rows]
    of_attempt = _trials(search)
    bars = [
        bar
        for row, span, lane in zip(rows, spans, lanes(spans), strict=True)
        for bar in _bars(row, span, lane, of_attempt[row.pk])
    ]
    columns = {name: [bar[at] for bar in bars] for at, name in enumerate(Bar._fields)}
    return columns | {
        "workers": [names[pk].name for pk in order],
        "worker": [order.index(b.worker) for b in bars],
    }


def _span(row: Attempt, now: dt.datetime) -> Span:
    start, end = (row.claimed or row.assigned).timestamp(), (row.ended or now).timestamp()
    return row.worker_id, start, max(start, end)


class _Held(NamedTuple):
    """A trial as an attempt held it."""

    number: int
    newest: int
    state: str
    started: dt.datetime | None
    finished: dt.datetime | None


def _trials(search: Job) -> dict[int, list[_Held]]:
    held: dict[int, list[_Held]] = defaultdict(list)
    fields = ("trial__number", "trial__attempt", "trial__state", "trial__started", "trial__finished")
    rows = Attempt.trials.through.objects.filter(attempt__job=search).order_by("trial__number")
    for attempt, *facts in rows.values_list("attempt_id", *fields):
        held[attempt].append(_Held(*facts))
    return held


def _bars(row: Attempt, span: Span, lane: int, trials: Sequence[_Held]) -> Iterator[Bar]:
    """Yield the trials that an attempt began, one after another as its runner trained them."""
    worker, begin, end = span
    begun = [trial for trial in trials if trial.started is not None and trial.started.timestamp() <= end]
    for trial in sorted(begun, key=lambda trial: (_last(trial.finished), trial.number)):
        start = max(begin, trial.started.timestamp() if trial.started is not None else begin)
        ended_here = trial.finished is not None and trial.newest == row.number
        stop = min(trial.finished.timestamp(), end) if ended_here and trial.finished is not None else end
        outcome = trial.state if ended_here else row.outcome
        stop = max(start, stop)
        yield Bar(
            trial.number, row.number, worker, lane, round(start, 1), round(stop, 1), outcome, row.resumed_from
        )
        begin = stop


def _last(moment: dt.datetime | None) -> float:
    """Return a moment for a sort that puts what has not ended last."""
    return moment.timestamp() if moment is not None else float("inf")


def lanes(spans: Sequence[Span]) -> list[int]:
    """Put spans that overlap on the same worker into different lanes, each into the first that is free.

    >>> lanes([(1, 0.0, 5.0), (1, 2.0, 3.0), (1, 4.0, 6.0), (2, 0.0, 1.0)])
    [0, 1, 1, 0]
    """
    free_at: dict[int, list[float]] = defaultdict(list)
    found = [0] * len(spans)
    for index in sorted(range(len(spans)), key=lambda i: spans[i][1]):
        worker, start, end = spans[index]
        ends = free_at[worker]
        lane = next((i for i, free in enumerate(ends) if free <= start), len(ends))
        if lane == len(ends):
            ends.append(end)
        else:
            ends[lane] = end
        found[index] = lane
    return found
