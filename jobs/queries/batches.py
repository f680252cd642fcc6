"""Decides how many waiting trials of a search one attempt takes."""

from math import ceil
from statistics import median_low

from jobs.models import Job
from jobs.states import TrialState

FILL_SECONDS = 3.0
"""How long an attempt shall be busy: long beside what placing one costs, short for who waits for a slot."""

MOST = 50
NEWEST = 9
"""This many of the newest trials tell how long the next ones take."""


def fill(search: Job) -> int | None:
    """Return how many trials make `FILL_SECONDS` of work; None while it is not known how long one takes."""
    ended = (TrialState.COMPLETED, TrialState.PRUNED, TrialState.PAUSED)  # the last: at the end of a rung
    finished = search.trials.filter(state__in=ended, started__isnull=False, finished__isnull=False)
    newest = finished.order_by("-finished").values_list("started", "finished")[:NEWEST]
    seconds = [(end - start).total_seconds() for start, end in newest if start and end]
    if not seconds:
        return None
    return max(1, min(MOST, int(FILL_SECONDS / max(median_low(seconds), 1e-3))))


def size(search: Job, waiting_trials: int, lanes: int) -> int:
    """Return how many trials the next attempt takes: never more than spreads them over all lanes.

    Args:
        search: the search's job.
        waiting_trials: how many wait.
        lanes: how many attempts could run at once.
    """
    if waiting_trials <= 1:
        return waiting_trials
    return min(fill(search) or 1, ceil(waiting_trials / max(lanes, 1)))
