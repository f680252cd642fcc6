"""Computes how far a search is within its time limit."""

from datetime import datetime

from jobs.models import Job
from jobs.queries.search import outcomes

SECONDS_PER_MINUTE = 60.0


def seconds_left(search: Job, now: datetime) -> float | None:
    """Return the seconds until a search's time limit. None without one, or before its start."""
    limit = outcomes.search_of(search).max_minutes
    if limit is None or search.started is None:
        return None
    return max(limit * SECONDS_PER_MINUTE - (now - search.started).total_seconds(), 0.0)


def elapsed_fraction(search: Job, now: datetime) -> float:
    """Return which fraction of its time limit has passed; 0 without a limit."""
    limit, seconds = outcomes.search_of(search).max_minutes, seconds_left(search, now)
    return 0.0 if limit is None or seconds is None else 1.0 - seconds / (limit * SECONDS_PER_MINUTE)


def most_seconds(search: Job, now: datetime) -> float | None:
    """Return how long a search's trials may run from now on. None without a limit."""
    limit = outcomes.search_of(search).max_minutes
    if limit is None:
        return None
    left = seconds_left(search, now)
    return limit * SECONDS_PER_MINUTE if left is None else left
