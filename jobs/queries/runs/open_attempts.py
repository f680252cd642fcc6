"""Reads which slots the open attempts occupy, in one query."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from jobs.kinds import kinds_that
from jobs.models import Attempt

_WITH_TRIALS = frozenset(kinds_that(lambda facts: facts.has_trials))


class OpenAttempt(NamedTuple):
    """An attempt that occupies slots.

    Attributes:
        key: its key.
        number: its number in the job.
        worker: its worker's key.
        pool: the worker's pool.
        job: its job's key.
        project: the job's project.
        person: who submitted the job.
        kind: the job's kind.
        priority: the job's priority.
        slots: how many slots it occupies.
        state: its state.
        assigned: when it was placed.
        claimed: when its worker began with it; None before.
        preempted_for: the job for which it was asked to free its slots; None if it was not.
    """

    key: int
    number: int
    worker: int
    pool: str
    job: int
    project: int | None
    person: int | None
    kind: str
    priority: int
    slots: int
    state: str
    assigned: dt.datetime
    claimed: dt.datetime | None
    preempted_for: int | None


_COLUMNS = (
    *("pk", "number", "worker_id", "worker__pool", "job_id", "job__project_id", "job__created_by_id"),
    *("job__kind", "job__priority", "slots", "state", "assigned", "claimed", "preempted_for_id"),
)


class OpenAttempts(NamedTuple):
    """Counts over all jobs' open attempts.

    Attributes:
        slots_of_worker: the number of slots in use, by worker key.
        slots_of_project: the same, by project key.
        of_search: the number of open attempts, by search key; each trains one trial at a time.
    """

    slots_of_worker: dict[int, int]
    slots_of_project: dict[int | None, int]
    of_search: dict[int, int]


def read_open_attempts() -> list[OpenAttempt]:
    """Return all open attempts."""
    return [OpenAttempt(*row) for row in Attempt.objects.open().values_list(*_COLUMNS)]


def count_open_attempts() -> OpenAttempts:
    """Return the sums over the open attempts; a key without any has 0."""
    return sum_open_attempts(read_open_attempts())


def sum_open_attempts(attempts: Iterable[OpenAttempt]) -> OpenAttempts:
    """Return the sums over open attempts that were read; a key without any has 0."""
    sums = OpenAttempts(defaultdict(int), defaultdict(int), defaultdict(int))
    for attempt in attempts:
        sums.slots_of_worker[attempt.worker] += attempt.slots
        sums.slots_of_project[attempt.project] += attempt.slots
        # A kind that this version does not know must not stop the placement of all other jobs.
        if attempt.kind in _WITH_TRIALS:
            sums.of_search[attempt.job] += 1
    return sums
