"""Reads the figures of the whole installation for its metrics, with the same few queries at any size."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Count, F, Min, Q, Sum

from jobs import clock
from jobs.models import Attempt, Job, Replica, RunningTotal, Worker
from jobs.queries.people.tokens import server_credentials
from jobs.queries.registry.endpoints import LIVE_WITHIN
from jobs.queries.runs.health import scheduler_is_alive
from jobs.states import OPEN, WAITING, AttemptState

MOST_POOLS = 50
"""Pools with figures of their own. Jobs may name any pool."""
REST = "(others)"
WORKER_STATES = ("up", "draining", "silent")
REPLICA_STATES = ("current", "behind", "silent")


@dataclass
class PoolFigures:
    """The figures of one pool."""

    queued: int = 0
    oldest_seconds: float = 0.0
    slots: int = 0
    busy: int = 0
    event_lag_seconds: float = 0.0
    workers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WORKER_STATES, 0))

    def add(self, other: "PoolFigures") -> None:
        """Add another pool's figures."""
        self.queued += other.queued
        self.slots += other.slots
        self.busy += other.busy
        self.oldest_seconds = max(self.oldest_seconds, other.oldest_seconds)
        self.event_lag_seconds = max(self.event_lag_seconds, other.event_lag_seconds)
        for state, count in other.workers.items():
            self.workers[state] += count


class Total(NamedTuple):
    """A running total's value, and the time of its last change in seconds since the epoch."""

    value: int
    changed: float


@dataclass(frozen=True)
class Figures:
    """The figures of the installation.

    Attributes:
        pools: by name, at most `MOST_POOLS` and `REST`.
        jobs: unfinished jobs by state.
        replicas: by `REPLICA_STATES`.
        totals: by name and label.
        has_scheduler: whether a scheduler holds the lease.
    """

    pools: dict[str, PoolFigures]
    jobs: dict[str, int]
    replicas: dict[str, int]
    totals: dict[tuple[str, str], Total]
    has_scheduler: bool


def read_figures() -> Figures:
    """Read all figures."""
    now = clock.estimate()
    pools: dict[str, PoolFigures] = defaultdict(PoolFigures)
    jobs = _count_jobs(pools, now)
    _count_workers(pools, now)
    held = Attempt.objects.filter(state__in=(AttemptState.ASSIGNED, AttemptState.RUNNING))
    for pool, slots in held.order_by().values_list("worker__pool").annotate(total=Sum("slots")):
        pools[pool].busy = slots
    return Figures(
        pools=_bounded(pools),
        jobs=jobs,
        replicas=_count_replicas(now),
        totals={
            (name, label): Total(value, changed.timestamp())
            for name, label, value, changed in RunningTotal.objects.values_list(
                "name", "label", "value", "changed"
            )
        },
        has_scheduler=scheduler_is_alive(),
    )


def _count_jobs(pools: dict[str, PoolFigures], now: dt.datetime) -> dict[str, int]:
    states = {str(state): 0 for state in sorted(OPEN)}
    rows = Job.objects.filter(state__in=OPEN).order_by().values_list("pool", "state")
    for pool, state, count, oldest in rows.annotate(count=Count("pk"), oldest=Min("queued")):
        states[state] += count
        if state in WAITING:
            figures = pools[pool]
            figures.queued += count
            if oldest is not None:
                figures.oldest_seconds = max(figures.oldest_seconds, (now - oldest).total_seconds())
    return states


def _count_workers(pools: dict[str, PoolFigures], now: dt.datetime) -> None:
    present = Worker.objects.filter(state__in=(Worker.State.UP, Worker.State.DRAINING))
    columns = ("pool", "state", "slots", "lease_until", "info__event_lag_seconds")
    for pool, state, slots, lease_until, lag in present.values_list(*columns):
        figures = pools[pool]
        # The row changes only at the scheduler's next sweep.
        shown = str(state) if lease_until > now else "silent"
        figures.workers[shown] += 1
        if shown == Worker.State.UP:
            figures.slots += slots
        if isinstance(lag, int | float):
            figures.event_lag_seconds = max(figures.event_lag_seconds, float(lag))


def _count_replicas(now: dt.datetime) -> dict[str, int]:
    is_live = Q(seen__gte=now - LIVE_WITHIN)
    is_current = Q(generation__gte=F("endpoint__generation"))
    reporting = Replica.objects.filter(stopped=False)
    counts: dict[str, int] = reporting.aggregate(
        current=Count("pk", filter=is_live & is_current), behind=Count("pk", filter=is_live & ~is_current)
    )
    # One without a valid credential was replaced, and not cut off.
    known = set(server_credentials().values_list("name", flat=True))
    names: Iterable[str] = reporting.exclude(is_live).values_list("name", flat=True)
    silent = sum(name.split("/")[0] in known for name in names)
    return {"current": counts["current"], "behind": counts["behind"], "silent": silent}


def _bounded(pools: dict[str, PoolFigures]) -> dict[str, PoolFigures]:
    """Return the pools with workers and long queues by name, and the sum of the others."""
    names = sorted(pools, key=lambda name: (-pools[name].slots, -pools[name].queued, name))
    kept = {name: pools[name] for name in sorted(names[:MOST_POOLS])}
    if rest := names[MOST_POOLS:]:
        kept[REST] = PoolFigures()
        for name in rest:
            kept[REST].add(pools[name])
    return kept
