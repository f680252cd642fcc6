"""Computes how long a job may run at most from now on."""

import datetime as dt

from jobs.models import Job
from jobs.queries.search import search_time


def longest_run(job: Job, now: dt.datetime) -> float | None:
    """Return how many seconds a job's next attempt may run, or None if nothing limits it."""
    if not job.facts.has_trials:
        # Attempts that ended count against the limit too, so this is the most.
        return None if job.max_minutes is None else job.max_minutes * search_time.SECONDS_PER_MINUTE
    try:
        return search_time.most_seconds(job, now)
    except ValueError:
        return None  # its spec is invalid, which is the reason to wait
