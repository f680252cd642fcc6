"""Reads which slots the open attempts occupy, in one query."""

from collections import defaultdict
from typing import NamedTuple

from jobs.kinds import kinds_that
from jobs.models import Attempt

_WITH_TRIALS = frozenset(kinds_that(lambda facts: facts.has_trials))


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


def count_open_attempts() -> OpenAttempts:
    """Return the sums over the open attempts; a key without any has 0."""
    sums = OpenAttempts(defaultdict(int), defaultdict(int), defaultdict(int))
    rows = Attempt.objects.open().values_list("worker_id", "job_id", "job__project_id", "job__kind", "slots")
    for worker, job, project, kind, slots in rows:
        sums.slots_of_worker[worker] += slots
        sums.slots_of_project[project] += slots
        # A kind that this version does not know must not stop the placement of all other jobs.
        if kind in _WITH_TRIALS:
            sums.of_search[job] += 1
    return sums
