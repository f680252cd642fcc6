"""Measures how long jobs and trials ran, without the time in which they waited, were paused or stopped."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.db.models import Count, F, Max, Q

from jobs.models import Attempt, Job, Trial

type Span = tuple[dt.datetime, dt.datetime | None]
"""When an attempt began, and when it ended; None while it runs."""


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


def breaks_of_trials(search: Job, numbers: Collection[int] | None = None) -> dict[int, float]:
    """Return the seconds in which no attempt ran trials, between their starts and their ends.

    Args:
        search: the trials' search.
        numbers: only these trials; None: all.

    Returns:
        Trial's primary key → seconds. Trials that ran without a break are missing, as are those that have not
        ended, and those in a search by a script outside, which has no attempts.
    """
    rows = Attempt.trials.through.objects.filter(
        trial__job=search,
        trial__started__isnull=False,
        trial__finished__isnull=False,
        attempt__claimed__isnull=False,
    )
    if numbers is not None:
        rows = rows.filter(trial__number__in=numbers)
    counted = rows.values("trial").annotate(attempts=Count("pk"), last=Max("attempt__ended"))
    # Most trials ran once and to their end: their rows are not read.
    interrupted = counted.filter(Q(attempts__gt=1) | Q(last__lt=F("trial__finished"))).values("trial")
    spans: dict[tuple[int, dt.datetime, dt.datetime], list[Span]] = defaultdict(list)
    moments = ("trial__started", "trial__finished", "attempt__claimed", "attempt__ended")
    chosen = rows.filter(trial__in=interrupted).order_by("attempt__claimed")
    for pk, started, finished, claimed, ended in chosen.values_list("trial_id", *moments):
        spans[pk, started, finished].append((claimed, ended))
    return {
        pk: seconds
        for (pk, started, finished), attempts in spans.items()
        if (seconds := _uncovered(started, finished, attempts))
    }


def _uncovered(started: dt.datetime, finished: dt.datetime, attempts: Iterable[Span]) -> float:
    """Return the seconds between the attempts since the start, and from the last one to the end.

    Args:
        started: when the trial began.
        finished: when it ended.
        attempts: its attempts, in the order in which they began.
    """
    seconds, until = 0.0, started
    for claimed, ended in attempts:
        # It had not begun this trial, or had begun it before a retry from the beginning.
        if ended is not None and ended <= started:
            continue
        if claimed > until and until > started:
            seconds += (min(claimed, finished) - until).total_seconds()
        if ended is None or ended >= finished or claimed >= finished:
            return seconds
        until = max(until, ended)
    return seconds + ((finished - until).total_seconds() if until > started else 0.0)


def running_seconds_of_trial(trial: Trial, breaks: Mapping[int, float]) -> float | None:
    """Return the seconds in which an ended trial ran; None before its end.

    Args:
        trial: the trial.
        breaks: see `breaks_of_trials`.
    """
    return seconds_without_break(trial.started, trial.finished, breaks.get(trial.pk, 0.0))


def seconds_without_break(
    started: dt.datetime | None, finished: dt.datetime | None, paused: float
) -> float | None:
    """Return the seconds from the start to the end, less those of its breaks; None if either is missing."""
    if started is None or finished is None:
        return None
    return max((finished - started).total_seconds() - paused, 0.0)
