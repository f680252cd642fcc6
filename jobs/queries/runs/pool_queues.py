"""Reads the length and the age of each pool's queue, so that a cluster can start workers for it."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Count, IntegerField, Min, Q
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast

from jobs import clock
from jobs.answers.runs.pool_queues import LabelledQueueOut, PoolQueueOut
from jobs.kinds import kinds_that
from jobs.models import Job, Trial, Worker
from jobs.queries.runs import open_attempts
from jobs.queries.runs.held_gpus import held_slots
from jobs.queries.runs.open_attempts import OpenAttempts
from jobs.queries.runs.pools import preempting_pools
from jobs.queries.search.waiting import BUILDING_FIRST
from jobs.states import PLACEABLE, WAITING, Desired


class Waiting(NamedTuple):
    """Attempts that a job waits for.

    Attributes:
        job: the job.
        attempts: how many there would be, if there were slots enough.
        since: since when the first of them waits.
    """

    job: Job
    attempts: int
    since: dt.datetime


@dataclass
class _Pool:
    name: str
    waiting: list[Waiting] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)


def pool_queues(name: str | None = None) -> list[PoolQueueOut]:
    """Return the queues of the pools in which something waits or a worker lives, or of one pool.

    The number of statements depends on nothing.

    Args:
        name: only this pool, also if it is empty.
    """
    now = clock.now()
    pools: dict[str, _Pool] = {} if name is None else {name: _Pool(name)}
    taken = open_attempts.count_open_attempts()
    for waiting in _waiting_of(_open_jobs(name), taken):
        pools.setdefault(waiting.job.pool, _Pool(waiting.job.pool)).waiting.append(waiting)
    for worker in _live_workers(name, now):
        pools.setdefault(worker.pool, _Pool(worker.pool)).workers.append(worker)
    preempting = preempting_pools()
    return [_pool_out(pools[pool], taken, now, preemption=pool in preempting) for pool in sorted(pools)]


def _open_jobs(pool: str | None) -> list[Job]:
    """Return the jobs that wait, and the searches that may need trials."""
    searches = Q(kind__in=kinds_that(lambda facts: facts.has_trials), revision__isnull=False)
    rows = Job.objects.filter(state__in=PLACEABLE, desired=Desired.RUNNING)
    rows = rows.filter(Q(state__in=WAITING) | searches)
    if pool is not None:
        rows = rows.filter(pool=pool)
    limit = KeyTextTransform("parallel_trials", KeyTransform("search", "revision__spec_json"))
    columns = (
        "kind",
        "state",
        "pool",
        "labels",
        "slots",
        "queued",
        "created",
        "payload_json",
        "revision_id",
        "why_waiting",
    )
    return list(rows.annotate(trial_limit=Cast(limit, IntegerField())).only(*columns))


def _waiting_of(jobs: Iterable[Job], taken: OpenAttempts) -> Iterator[Waiting]:
    jobs = list(jobs)
    trials = _waiting_trials([job for job in jobs if job.facts.has_trials])
    for job in jobs:
        if job.payload.task_done:
            continue  # it waits for its later steps, which are jobs of their own
        since = job.queued or job.created
        if not job.facts.has_trials:
            yield Waiting(job, 1, since)
        elif job.revision_id is not None:  # scripts run the trials of other searches
            yield from _waiting_of_search(job, trials[job.pk], taken.of_search[job.pk])


def _waiting_of_search(job: Job, trials: tuple[int, dt.datetime | None], running: int) -> Iterator[Waiting]:
    count, first = trials
    limit: int | None = vars(job)["trial_limit"]
    if limit is not None:
        count = min(count, max(limit - running, 0))
    if count:
        yield Waiting(job, count, first or job.queued or job.created)
    elif not (trials[0] or running or job.payload.finishing or job.why_waiting.startswith(BUILDING_FIRST)):
        # Only a worker chooses the values of its next trials.
        yield Waiting(job, 1, job.queued or job.created)


def _waiting_trials(searches: list[Job]) -> dict[int, tuple[int, dt.datetime | None]]:
    """Return how many trials of each search wait, and when the first was made."""
    rows = Trial.objects.filter(job__in=[search.pk for search in searches]).waiting()
    counted = rows.order_by().values_list("job").annotate(Count("pk"), Min("created"))
    found: dict[int, tuple[int, dt.datetime | None]] = defaultdict(lambda: (0, None))
    found.update({job: (count, first) for job, count, first in counted})
    return found


def _live_workers(pool: str | None, now: dt.datetime) -> list[Worker]:
    rows = Worker.objects.filter(state__in=(Worker.State.UP, Worker.State.DRAINING), lease_until__gt=now)
    return list(rows if pool is None else rows.filter(pool=pool))


def _pool_out(pool: _Pool, taken: OpenAttempts, now: dt.datetime, *, preemption: bool) -> PoolQueueOut:
    up = [worker for worker in pool.workers if worker.state == Worker.State.UP]
    able = [worker for worker in up if not worker.refusal]
    busy = sum(taken.slots_of_worker[worker.pk] for worker in pool.workers)
    free = (max(worker.slots - taken.slots_of_worker[worker.pk] - held_slots(worker), 0) for worker in able)
    groups: dict[tuple[tuple[str, str], ...], list[Waiting]] = defaultdict(list)
    for waiting in pool.waiting:
        groups[tuple(sorted(waiting.job.labels.items()))].append(waiting)
    return PoolQueueOut(
        pool=pool.name,
        queued=sum(waiting.attempts for waiting in pool.waiting),
        oldest_seconds=_age(pool.waiting, now),
        slots_wanted=_slots(pool.waiting),
        slots=sum(worker.slots for worker in able),
        busy=busy,
        free=sum(free),
        workers=len(able),
        draining=len(pool.workers) - len(up),
        refusing=len(up) - len(able),
        preemption=preemption,
        labels=[
            LabelledQueueOut(
                labels=dict(labels),
                queued=sum(waiting.attempts for waiting in group),
                oldest_seconds=_age(group, now),
                slots_wanted=_slots(group),
                largest=max(waiting.job.slots for waiting in group),
            )
            for labels, group in sorted(groups.items())
        ],
    )


def _slots(waiting: list[Waiting]) -> int:
    return sum(entry.attempts * entry.job.slots for entry in waiting)


def _age(waiting: list[Waiting], now: dt.datetime) -> float | None:
    ages = ((now - entry.since).total_seconds() for entry in waiting)
    return max((round(max(age, 0.0), 1) for age in ages), default=None)
