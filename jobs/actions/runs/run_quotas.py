"""Applies a project's quotas to its runs: events a second, and the disk space for their records."""

from collections.abc import Sequence

from django.db.models import Sum

from jobs.actions.storage import retention
from jobs.errors import QuotaReached
from jobs.models import Attempt, Job
from jobs.queries.people.quotas import disk_sentence, limits_of
from jobs.queries.storage import disk_use
from jobs.states import AttemptState

SMALLEST_CHANGE = 100
"""Smaller changes to a run's event rate, in events a second, are not stored."""


def share_events(attempt_id: int, rate: int) -> float | None:
    """Store how many events a second an attempt records, and return how many it may record.

    The slots of a project's attempts share its events. An attempt gets more than its share while others use
    less than theirs.

    Returns:
        Events a second; None if there is no quota, because the job belongs to no project.
    """
    attempt = Attempt.objects.select_related("job__project").get(pk=attempt_id)
    return _share_rate(attempt.job, [attempt], rate)


def share_events_of_scripts(job_id: int, rate: int) -> float | None:
    """Do the same for an external search, whose scripts together have one slot's share."""
    job = Job.objects.select_related("project").get(pk=job_id)
    return _share_rate(job, list(Attempt.objects.open().filter(job=job)), rate)


def _share_rate(job: Job, attempts: Sequence[Attempt], rate: int) -> float | None:
    attempt_rate = rate // max(1, len(attempts))
    for attempt in attempts:
        # Without a large change nothing is written: most runs record a few events a second.
        if abs(attempt_rate - attempt.event_rate) > max(attempt.event_rate // 10, SMALLEST_CHANGE):
            Attempt.objects.filter(pk=attempt.pk, state=AttemptState.RUNNING).update(event_rate=attempt_rate)
    if job.project is None:
        return None
    quota = limits_of(job.project).events
    own_attempts = [attempt.pk for attempt in attempts]
    others = Attempt.objects.open().filter(job__project=job.project).exclude(pk__in=own_attempts)
    sums = others.aggregate(slots=Sum("slots"), rate=Sum("event_rate"))
    slots = max(1, sum(attempt.slots for attempt in attempts))
    share = quota * slots / (slots + (sums["slots"] or 0))
    return max(share, float(quota - (sums["rate"] or 0)))


def require_within_disk(attempt_id: int, *, beside: int = 0) -> None:
    """Require that a project is within its disk quota after an attempt has written to the disk.

    Args:
        attempt_id: the attempt.
        beside: the attempt's bytes that are not in the database, such as files that it has not stored.

    Raises:
        QuotaReached: the project's files and events use more than its quota.
    """
    job = Attempt.objects.select_related("job__project").get(pk=attempt_id).job
    require_job_within_disk(job, beside=beside)


def require_job_within_disk(job: Job, *, beside: int = 0) -> None:
    """Do the same after a job has written to the disk.

    The job's checkpoints from which nothing will resume are removed first: usually the scheduler does this
    some seconds later. The use that is known may be some seconds old.
    """
    project = job.project
    if project is None:
        return
    quota = limits_of(project).bytes
    if disk_use.recent_bytes(project.pk) + beside <= quota:
        return
    retention.thin_out(job)
    if (used := disk_use.bytes_of_project(project.pk) + beside) > quota:
        raise QuotaReached(disk_sentence(project, used, quota))
