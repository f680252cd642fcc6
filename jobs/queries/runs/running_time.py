"""Measures how long jobs ran: without the time in which they waited, were paused, or had stopped."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from jobs.models import Attempt, Job


def running_seconds(jobs: Sequence[Job], shown_in: Mapping[int, Iterable[int]]) -> dict[int, float]:
    """Return the seconds in which ended jobs ran; a job that has not ended is missing.

    A job runs while one of its attempts, or of its steps' attempts, runs. Attempts at the same time, as in a
    search, count once. A job without attempts, and a search by a script outside, have no other time than that
    between their start and their end.

    Args:
        jobs: the jobs.
        shown_in: job → the jobs whose time includes its attempts; all jobs and their steps.
    """
    ended = {job.pk: job for job in jobs if job.started is not None and job.finished is not None}
    members = [member for member, roots in shown_in.items() if not ended.keys().isdisjoint(roots)]
    spans: dict[int, list[tuple[dt.datetime, dt.datetime]]] = defaultdict(list)
    rows = Attempt.objects.filter(job__in=members, claimed__isnull=False, ended__isnull=False)
    for member, claimed, end in rows.order_by("claimed").values_list("job_id", "claimed", "ended"):
        for pk in shown_in[member]:
            if claimed is not None and end is not None:
                spans[pk].append((claimed, end))
    return {
        pk: _between(job) if _is_outside(job) else _covered(spans[pk]) or _between(job)
        for pk, job in ended.items()
    }


def _is_outside(job: Job) -> bool:
    """Return whether a script elsewhere holds the trials: it works between them, too."""
    return job.facts.has_trials and job.facts.task is None


def _covered(spans: Iterable[tuple[dt.datetime, dt.datetime]]) -> float:
    """Return the seconds that spans cover together; they are sorted by their beginnings."""
    seconds = 0.0
    until: dt.datetime | None = None
    for begin, end in spans:
        counted_from = begin if until is None else max(begin, until)
        if end > counted_from:
            seconds += (end - counted_from).total_seconds()
            until = end
    return seconds


def _between(job: Job) -> float:
    return (job.finished - job.started).total_seconds() if job.finished and job.started else 0.0
