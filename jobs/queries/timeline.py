"""Which trial ran when and where: the attempts of a search as columns, packed into lanes."""

import datetime as dt
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.models import F

from jobs.models import Job, Worker

Span = tuple[int, float, float]
"""Whose it is, and from when to when, in seconds."""


def read(search: Job, *, now: dt.datetime) -> dict[str, Any]:
    """Return the attempts at a search's trials, those that still run up to `now`.

    Returns:
        Columns `trial`, `attempt`, `worker` (an index into `workers`), `lane` (its row under that worker),
        `start`, `end` (seconds since 1970), `outcome` (empty while it runs), `resumed_from`.
    """
    rows = list(
        search.attempts.filter(trial__isnull=False)
        .order_by("assigned", "pk")
        .values_list(
            F("trial__number"),
            "number",
            "worker_id",
            "outcome",
            "resumed_from",
            "assigned",
            "claimed",
            "ended",
        )
    )
    names = Worker.objects.in_bulk({row[2] for row in rows})
    order = sorted(names, key=lambda pk: (names[pk].name, pk))
    spans = [
        (worker, (claimed or assigned).timestamp(), (ended or now).timestamp())
        for _, _, worker, _, _, assigned, claimed, ended in rows
    ]
    return {
        "workers": [names[pk].name for pk in order],
        "trial": [row[0] for row in rows],
        "attempt": [row[1] for row in rows],
        "worker": [order.index(row[2]) for row in rows],
        "lane": lanes(spans),
        "start": [round(start, 1) for _, start, _ in spans],
        "end": [round(max(start, end), 1) for _, start, end in spans],
        "outcome": [row[3] for row in rows],
        "resumed_from": [row[4] for row in rows],
    }


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
