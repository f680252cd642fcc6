"""Chooses how many of a search's waiting trials one attempt runs."""

import datetime as dt
from math import ceil
from statistics import median_low

from django.db.models import QuerySet

from jobs.models import Job, Trial
from jobs.states import TrialState

TARGET_SECONDS = 3.0
"""An attempt's target duration: long compared with the time to place it, short for jobs that wait."""

MAX_TRIALS = 50
"""The most trials in an attempt."""

NEWEST = 9
"""The next trials' duration is estimated from so many of the newest."""


def _newest_times(search: Job) -> QuerySet[Trial, tuple[dt.datetime | None, dt.datetime | None]]:
    """Return when a search's newest trials began and ended."""
    # A trial may be paused because it reached the end of its rung.
    ended = (TrialState.COMPLETED, TrialState.PRUNED, TrialState.PAUSED)
    finished = search.trials.filter(state__in=ended, started__isnull=False, finished__isnull=False)
    return finished.order_by("-finished").values_list("started", "finished")[:NEWEST]


def trials_in_target(search: Job) -> int | None:
    """Return how many trials take about `TARGET_SECONDS`; None while no trial has ended."""
    seconds = [(end - start).total_seconds() for start, end in _newest_times(search) if start and end]
    if not seconds:
        return None
    # Both times come from the runner's clock, so a duration may be 0.
    return max(1, min(MAX_TRIALS, int(TARGET_SECONDS / max(median_low(seconds), 1e-3))))


def batch_size(search: Job, waiting_trials: int, concurrency: int) -> int:
    """Count the next attempt's trials. Waiting trials are divided among all possible attempts.

    Args:
        search: the search's job.
        waiting_trials: how many trials wait.
        concurrency: how many attempts could run at the same time.
    """
    if waiting_trials <= 1:
        return waiting_trials
    # While no duration is known, an attempt has one trial.
    return min(trials_in_target(search) or 1, ceil(waiting_trials / max(concurrency, 1)))
