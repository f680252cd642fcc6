"""Reads when and on which worker each trial ran: a search's attempts as columns, arranged in lanes."""

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jobs.models import Attempt, Job, Worker
from jobs.queries.search.trial_columns import as_text

Span = tuple[int, float, float]
"""The worker's id, and the start and the end in seconds since 1970."""


class Bar(NamedTuple):
    """One trial in one attempt. The fields are the result's columns."""

    trial: int
    attempt: int
    worker: int
    lane: int
    start: float
    end: float
    outcome: str
    resumed_from: int | None


class _Row(NamedTuple):
    """An attempt's fields. Reading thousands as model instances would take several times as long."""

    pk: int
    number: int
    worker_id: int
    outcome: str
    resumed_from: int | None
    assigned: float
    claimed: float | None
    ended: float | None


def read_timeline(search: Job, *, now: dt.datetime) -> dict[str, Any]:
    """Return the attempts to run a search's trials. Running ones end at `now`.

    Returns:
        Columns `trial`, `attempt`, `worker` (an index into `workers`), `lane` (that worker's row), `start`,
        `end` (seconds since 1970), `outcome` (empty while it runs), `resumed_from`.
    """
    rows = _read_attempts(search)
    names = Worker.objects.in_bulk({row.worker_id for row in rows})
    order = sorted(names, key=lambda pk: (names[pk].name, pk))  # a restarted worker has the same name
    spans = [_attempt_span(row, now.timestamp()) for row in rows]
    of_attempt = _read_trials(search)
    bars = [
        bar
        for row, span, lane in zip(rows, spans, assign_lanes(spans), strict=True)
        for bar in _trial_bars(row, span, lane, of_attempt[row.pk])
    ]
    columns = {name: [bar[at] for bar in bars] for at, name in enumerate(Bar._fields)}
    return columns | {
        "workers": [names[pk].name for pk in order],
        "worker": [order.index(b.worker) for b in bars],
    }


def _read_attempts(search: Job) -> list[_Row]:
    facts = ("pk", "number", "worker_id", "outcome", "resumed_from")
    moments = map(as_text, ("assigned", "claimed", "ended"))
    rows = search.attempts.order_by("assigned", "pk").values_list(*facts, *moments)
    return [_Row(*row) for row in _with_seconds(rows, len(facts))]


def _with_seconds(rows: Iterable[tuple[Any, ...]], first: int) -> Iterator[tuple[Any, ...]]:
    """Return rows with the columns from number `first` on converted from times to seconds since 1970.

    The times are the database's texts in UTC. Parsing them with Django takes twenty times as long.
    """
    columns = list(zip(*rows, strict=True))
    return zip(*columns[:first], *map(_epoch_seconds, columns[first:]), strict=True)


def _epoch_seconds(moments: Iterable[str | None]) -> list[float | None]:
    # PostgreSQL appends the offset `+00`, which NumPy does not parse.
    texts = ["NaT" if moment is None else moment.partition("+")[0] for moment in moments]
    micros = np.array(texts, dtype="datetime64[us]")
    seconds: list[float] = (micros.astype(np.int64) / 1e6).tolist()
    return [None if lacks else second for second, lacks in zip(seconds, np.isnat(micros), strict=True)]


def _attempt_span(row: _Row, now: float) -> Span:
    start = row.claimed or row.assigned
    return row.worker_id, start, max(start, row.ended or now)


class _AttemptTrial(NamedTuple):
    """A trial in an attempt. `newest` is the trial's newest attempt."""

    number: int
    newest: int
    state: str
    started: float | None
    finished: float | None


def _read_trials(search: Job) -> dict[int, list[_AttemptTrial]]:
    trials: dict[int, list[_AttemptTrial]] = defaultdict(list)
    facts = ("attempt_id", "trial__number", "trial__attempt", "trial__state")
    moments = map(as_text, ("trial__started", "trial__finished"))
    rows = Attempt.trials.through.objects.filter(attempt__job=search).order_by("trial__number")
    for attempt, *fields in _with_seconds(rows.values_list(*facts, *moments), len(facts)):
        trials[attempt].append(_AttemptTrial(*fields))
    return trials


def _trial_bars(row: _Row, span: Span, lane: int, trials: Sequence[_AttemptTrial]) -> Iterator[Bar]:
    """Yield the trials that an attempt started, in the order in which its runner trained them."""
    worker, begin, end = span
    started = [trial for trial in trials if trial.started is not None and trial.started <= end]
    for trial in sorted(started, key=lambda trial: (_end_or_infinity(trial.finished), trial.number)):
        start = max(begin, trial.started or begin)
        # A trial's row has only its last end. It ended in this attempt if no later attempt took it.
        ended_here = trial.finished is not None and trial.newest == row.number
        stop = min(_end_or_infinity(trial.finished), end) if ended_here else end
        outcome = trial.state if ended_here else row.outcome
        stop = max(start, stop)
        yield Bar(
            trial.number, row.number, worker, lane, round(start, 1), round(stop, 1), outcome, row.resumed_from
        )
        begin = stop  # a runner trains the trials of its attempt one after another


def _end_or_infinity(moment: float | None) -> float:
    """Return a sort key that puts trials without an end last."""
    return math.inf if moment is None else moment


def assign_lanes(spans: Sequence[Span]) -> list[int]:
    """Return a lane for each span: its worker's first lane without an overlapping span.

    >>> assign_lanes([(1, 0.0, 5.0), (1, 2.0, 3.0), (1, 4.0, 6.0), (2, 0.0, 1.0)])
    [0, 1, 1, 0]
    """
    free_at: dict[int, list[float]] = defaultdict(list)
    lanes = [0] * len(spans)
    for index in sorted(range(len(spans)), key=lambda i: spans[i][1]):
        worker, start, end = spans[index]
        ends = free_at[worker]
        free_lane = next((i for i, free in enumerate(ends) if free <= start), len(ends))
        if free_lane == len(ends):
            ends.append(end)
        else:
            ends[free_lane] = end
        lanes[index] = free_lane
    return lanes
