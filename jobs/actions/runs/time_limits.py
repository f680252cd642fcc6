"""Ends trainings and scripts that have run for as long as their `max_minutes` allow.

Time counts from the claim of each attempt to its end, so waiting and pauses are left out. The end is a stop:
the runner writes a checkpoint with the best weights so far, and a retry continues from there.
"""

import datetime as dt
from collections import defaultdict

from django.db import transaction
from django.db.models import F, Q

from jobs import clock, queue
from jobs.actions.isolation import for_each
from jobs.actions.job_locks import locked_with_root
from jobs.actions.transition import move
from jobs.models import Attempt, Job
from jobs.states import TIMED_OUT, AttemptState, Desired, JobState


def end_overdue() -> int:
    """Stop the jobs whose time is over. Return how many."""
    running = Attempt.objects.filter(state=AttemptState.RUNNING, job__max_minutes__isnull=False)
    rows = Job.objects.filter(pk__in=running.values("job"), desired=Desired.RUNNING)
    jobs = list(rows)
    if not jobs:
        return 0
    spent = _spent_seconds(jobs, clock.now())
    overdue = [job for job in jobs if job.max_minutes is not None and spent[job.pk] >= 60.0 * job.max_minutes]
    return for_each(overdue, _end)


def _spent_seconds(jobs: list[Job], now: dt.datetime) -> dict[int, float]:
    """Return for how long jobs have run since they were submitted or retried, by key."""
    # A retry clears the start, so that attempts before it do not count.
    counted = Q(ended=None) | Q(ended__gt=F("job__started"))
    rows = Attempt.objects.filter(counted, job__in=jobs)
    spent: dict[int, float] = defaultdict(float)
    for job, claimed, ended in rows.values_list("job_id", "claimed", "ended"):
        if claimed is not None:
            spent[job] += max(((ended or now) - claimed).total_seconds(), 0.0)
    return spent


def _end(overdue: Job) -> bool:
    """Request the stop of a job, unless it has ended or a user wants something else meanwhile."""
    with transaction.atomic():
        job = locked_with_root(overdue.pk)
        if job.desired != Desired.RUNNING or job.state not in (JobState.STARTING, JobState.RUNNING):
            return False
        message = (
            f"It has run for {job.max_minutes:g} minutes, its limit resources.max_minutes. Its newest "
            "checkpoint, with the best weights, is kept: a retry continues from there with new minutes."
        )
        Job.objects.filter(pk=job.pk).update(
            desired=Desired.STOPPED, error={"code": TIMED_OUT, "message": message}
        )
        if job.state == JobState.RUNNING:
            move(job, JobState.STOPPING, reason=TIMED_OUT)
        for worker_id, attempt_id in job.attempts.open().values_list("worker_id", "pk"):
            queue.wake_worker(worker_id, attempt_id)
    return True
