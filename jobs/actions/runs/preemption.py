"""Lets running work write a checkpoint and wait again, so that a job of higher priority gets its slots.

The request is a column of the attempt. Its worker learns of it like of a pause, and the work is queued again
when the attempt ends. If the scheduler dies in between, the next one reads the column and preempts no other.
"""

from collections.abc import Iterable

from django.db import transaction

from jobs import access, hints, queue
from jobs.actions.audit import audit
from jobs.actions.runs import events
from jobs.models import Attempt, Checkpoint, Job, PoolSettings, User
from jobs.placement.state import Running
from jobs.queries.runs.open_attempts import OpenAttempt
from jobs.states import AttemptState, Desired


def plain_attempts(attempts: Iterable[OpenAttempt], *, with_checkpoints: bool) -> list[Running]:
    """Return open attempts as the decision about placements reads them.

    Args:
        attempts: the open attempts.
        with_checkpoints: whether to find out which of them can continue from a checkpoint. Only one that has
            written some counts, so that no script is preempted that would begin again.
    """
    rows = list(attempts)
    written: set[tuple[int, int]] = set()
    if with_checkpoints:
        kept = Checkpoint.objects.kept().filter(job__in={row.job for row in rows})
        written = set(kept.values_list("job_id", "attempt"))
    return [
        Running(
            key=row.key,
            job=row.job,
            person=row.person,
            project=row.project,
            machine=row.worker,
            slots=row.slots,
            priority=row.priority,
            started=(row.claimed or row.assigned).timestamp(),
            resumes=row.state == AttemptState.RUNNING and (row.job, row.number) in written,
            leaves_for=row.preempted_for,
        )
        for row in rows
    ]


def preempt(attempt_id: int, *, waiting: int) -> bool:
    """Ask an attempt to write a checkpoint and free its slots for a waiting job. Return whether it was asked.

    Args:
        attempt_id: the attempt.
        waiting: the key of the job of higher priority.
    """
    with transaction.atomic():
        attempt = Attempt.objects.select_related("job").filter(pk=attempt_id).first()
        job = Job.objects.filter(pk=waiting).first()
        if attempt is None or job is None:
            return False
        # In one order, since two schedulers may be at work for a moment.
        for root in sorted({attempt.job.root_id_or_self, job.root_id_or_self}):
            Job.objects.locked().only("pk").filter(pk=root).first()
        running = Attempt.objects.filter(pk=attempt_id, state=AttemptState.RUNNING, preempted_for=None)
        # A user may have paused or stopped it, or changed a priority.
        running = running.filter(job__desired=Desired.RUNNING, job__priority__lt=job.priority)
        if not running.exists() or not Attempt.objects.filter(
            pk=attempt_id, state=AttemptState.RUNNING, preempted_for=None
        ).update(preempted_for=job):
            return False
        _tell_both(attempt, job)
        queue.wake_worker(attempt.worker_id, attempt.pk)
    return True


def _tell_both(attempt: Attempt, waiting: Job) -> None:
    """Append an event to the logs of the preempted job and of the one that waits."""
    job = attempt.job
    preempted = (
        f"Preempted: job {waiting.pk} has priority {waiting.priority}, this one {job.priority}. It writes a "
        "checkpoint, waits again and continues from there."
    )
    gained = (
        f"Job {job.pk} of priority {job.priority} writes a checkpoint and frees {attempt.slots} of its slots "
        f"for this job of priority {waiting.priority}."
    )
    for row, line in sorted(((job, preempted), (waiting, gained)), key=lambda pair: pair[0].root_id_or_self):
        number = attempt.number if row is job else None
        body = events.event("log", row, attempt=number, level="info", source="scheduler", line=line)
        events.append(row.root_id_or_self, [body])


def set_preemption(pool: str, on: bool, *, by: User) -> None:
    """Switch preemption of a pool on or off.

    Raises:
        Forbidden: `by` is not an administrator of the installation.
    """
    access.require_admin(by)
    with transaction.atomic():
        PoolSettings.objects.update_or_create(pool=pool, defaults={"preemption": on})
        audit.record("pool.preemption", f"pool:{pool}", by=by, pool=pool, on=on)
        hints.send("schedule")
