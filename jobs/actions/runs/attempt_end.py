"""Ends attempts: when their worker reports the end, when their lease expires, or when their worker dies."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from jobs import clock, hints
from jobs.actions.isolation import for_each
from jobs.actions.job_locks import lock_root, locked_with_root
from jobs.actions.runs import reachability, results
from jobs.actions.runs.fence import Holder, require_held
from jobs.actions.runs.kind_actions import JobError
from jobs.actions.transition import move, move_trial
from jobs.errors import StaleFence
from jobs.models import Attempt, Job, Trial, Worker
from jobs.states import TIMED_OUT, AttemptState, Desired, JobState, Outcome, TrialState

FREE_LOSSES = ("drained", "unclaimed", "no_space", "sandbox_refused", "gpu_held", "preempted")
"""Losses with these error codes do not count as a restart."""

WORKER_DIED: JobError = {
    "code": "worker_died",
    "message": "The worker process was killed; it has been started again.",
}
DIED_BEFORE: JobError = {
    "code": "unclaimed",
    "message": "The worker process was killed before it claimed the attempt.",
}
PREEMPTED: JobError = {
    "code": "preempted",
    "message": "A job of higher priority needed its slots; it continues from its newest checkpoint.",
}
DECLINED: JobError = {
    "code": "unclaimed",
    "message": "The worker was shutting down; the work is placed on another one.",
}
LEFT_OPEN: JobError = {
    "code": "left_open",
    "message": "the runner reported its task as completed, but did not report the end of this trial",
}


def finish(
    attempt_id: int,
    outcome: Outcome,
    *,
    error: JobError | None = None,
    result: dict[str, Any] | None = None,
    by: Holder | None = None,
) -> None:
    """End an attempt and update its job or trials. A second call with the same outcome does nothing.

    Trials in the attempt that had begun end with `outcome`, and trials that had not begun stay queued. Trials
    that had ended do not change.

    Args:
        attempt_id: the attempt.
        outcome: how it ended. After `lost`, the work is queued again and resumes from its newest checkpoint.
        error: `code`, `message` and optionally `traceback`, for a failure.
        result: the content in the task's `result` event.
        by: the worker that reports the end; None: not a worker.

    Raises:
        StaleFence: the attempt has ended with another outcome, or the worker does not run it.
    """
    with transaction.atomic():
        rows = Attempt.objects.filter(pk=attempt_id).open()
        if by is not None:
            require_held(attempt_id, by)
            # Not one that it has not claimed: a restored database may have given the id to other work.
            rows = rows.filter(state=AttemptState.RUNNING)
        if not rows.update(state=AttemptState.ENDED, outcome=outcome, error=error, ended=clock.now()):
            was = Attempt.objects.values_list("outcome", flat=True).get(pk=attempt_id)
            if was == outcome:
                return
            raise StaleFence(f"attempt {attempt_id} {f'has ended as {was}' if was else 'is not claimed'}")
        attempt = Attempt.objects.get(pk=attempt_id)
        # Locked: a stop that commits between this read and the transition would leave the job in `stopping`.
        attempt.job = locked_with_root(attempt.job_id)
        if outcome is Outcome.PAUSED and _is_preempted(attempt):
            outcome, error = Outcome.LOST, PREEMPTED
            Attempt.objects.filter(pk=attempt_id).update(error=error)
        if attempt.job.facts.has_trials:
            _end_trials(attempt, outcome, error)
        else:
            _end_job(attempt, attempt.job, outcome, error, result or {})
        hints.send("schedule", job=attempt.job_id)


def _is_preempted(attempt: Attempt) -> bool:
    """Return whether an attempt that paused made room for another job, and no user wants its job to pause."""
    return attempt.preempted_for_id is not None and attempt.job.desired == Desired.RUNNING


def _end_trials(attempt: Attempt, outcome: Outcome, error: JobError | None) -> None:
    """End the trials that the attempt had begun. The remaining trials are released when the attempt ends."""
    held = attempt.trials.filter(attempt=attempt.number, state__in=(TrialState.QUEUED, TrialState.RUNNING))
    left = list(held.order_by("number"))
    begun = [trial for trial in left if trial.state == TrialState.RUNNING]
    if outcome is Outcome.COMPLETED and left:
        # Neither may be repeated for ever: the loss costs a restart, and the failure ends a trial.
        outcome, error = (Outcome.LOST if begun else Outcome.FAILED), LEFT_OPEN
    if outcome is Outcome.FAILED and not begun:
        # A task that cannot begin must fail a trial, or it would be placed again for ever.
        begun = left[:1]
    for trial in begun:
        trial.job = attempt.job
        _end_trial(attempt, trial, outcome, error)


def _end_trial(attempt: Attempt, trial: Trial, outcome: Outcome, error: JobError | None) -> None:
    match outcome:
        case Outcome.FAILED:
            trial.executions.interrupt(TrialState.FAILED)
            move_trial(trial, TrialState.FAILED, fence=attempt.number, error=error)
        case Outcome.PAUSED:
            trial.executions.interrupt(TrialState.PAUSED)
            move_trial(trial, TrialState.PAUSED, fence=attempt.number)
        case Outcome.STOPPED | Outcome.KILLED:
            trial.executions.interrupt(TrialState.STOPPED)
            move_trial(trial, TrialState.STOPPED, fence=attempt.number)
        case Outcome.LOST:
            _requeue_trial(trial, attempt, error)


def _requeue_trial(trial: Trial, attempt: Attempt, error: JobError | None) -> None:
    """Queue a lost trial again, unless a user wants it to end or it was restarted too often."""
    if attempt.job.desired != Desired.RUNNING:
        to = TrialState.PAUSED if attempt.job.desired == Desired.PAUSED else TrialState.STOPPED
        trial.executions.interrupt(to)
        move_trial(trial, to, fence=attempt.number)
        return
    restarts = trial.restarts + _restart_cost(error)
    if restarts > attempt.job.max_restarts:
        trial.executions.interrupt(TrialState.FAILED)
        move_trial(trial, TrialState.FAILED, fence=attempt.number, error=_restart_error(attempt, error))
        return
    trial.executions.interrupt(TrialState.QUEUED)
    move_trial(trial, TrialState.QUEUED, fence=attempt.number, restarts=restarts)


def _restart_cost(error: JobError | None) -> int:
    """Return how many restarts a loss counts as: 0 or 1."""
    return 0 if error is not None and error.get("code") in FREE_LOSSES else 1


def _restart_error(attempt: Attempt, error: JobError | None) -> JobError:
    cause = (error or {}).get("message", "its worker was lost")
    return {
        "code": "too_many_restarts",
        "message": f"gave up after {attempt.job.max_restarts} restarts: {cause}",
    }


def _end_job(
    attempt: Attempt, job: Job, outcome: Outcome, error: JobError | None, result: dict[str, Any]
) -> None:
    # A newer attempt decides about the job; the end of this one only frees its slots.
    if job.fence != attempt.number:
        return
    if job.state == JobState.STOPPING and outcome in (Outcome.COMPLETED, Outcome.FAILED):
        _ended_while_stopping(job, attempt, outcome, error, result)
        return
    match outcome:
        case Outcome.COMPLETED:
            results.complete_job(job, result)
        case Outcome.FAILED:
            move(job, JobState.FAILED, fence=attempt.number, error=error)
            results.report_failure(job, error or {})
        case Outcome.PAUSED:
            move(job, JobState.PAUSED, fence=attempt.number)
        case Outcome.STOPPED | Outcome.KILLED:
            _stop_job(job, attempt, reason="killed" if outcome is Outcome.KILLED else "")
        case Outcome.LOST:
            _requeue_job(job, attempt, error)


def _ended_while_stopping(
    job: Job, attempt: Attempt, outcome: Outcome, error: JobError | None, result: dict[str, Any]
) -> None:
    """Stop a job that ended by itself after a stop request. Its result is kept."""
    Job.objects.filter(pk=job.pk).update(results_json=result, error=error or job.error)
    move(job, JobState.STOPPED, fence=attempt.number)
    if outcome is Outcome.COMPLETED:
        results.apply_result(job, result)
    else:
        results.report_failure(job, error or {})


def _stop_job(job: Job, attempt: Attempt, *, reason: str) -> None:
    if (job.error or {}).get("code") == TIMED_OUT:
        reason = TIMED_OUT
    if job.state in (JobState.STARTING, JobState.RUNNING):
        move(job, JobState.STOPPING, fence=attempt.number, reason=reason)
    move(job, JobState.STOPPED, fence=attempt.number, reason=reason)
    results.report_stop(job)


def _requeue_job(job: Job, attempt: Attempt, error: JobError | None) -> None:
    """Let a lost job be placed again, unless a user wants it to end or it was restarted too often."""
    if job.desired == Desired.PAUSED:
        move(job, JobState.PAUSED, fence=attempt.number, reason="lost")
        return
    if job.desired != Desired.RUNNING or job.state == JobState.STOPPING:
        _stop_job(job, attempt, reason="lost")
        return
    move(job, JobState.LOST, fence=attempt.number)
    restarts = job.restarts + _restart_cost(error)
    if restarts > job.max_restarts:
        failure = _restart_error(attempt, error)
        move(job, JobState.FAILED, fence=attempt.number, error=failure)
        results.report_failure(job, failure)
    else:
        move(job, JobState.RETRYING, fence=attempt.number, restarts=restarts)


def reap(job: Job | None = None) -> int:
    """End the attempts whose lease has expired and queue their work again.

    A lease counts only the time in which the database could be reached.

    Args:
        job: ends only this job's attempts.

    Returns:
        How many attempts were ended.
    """
    reachability.record()
    expired = _expired_attempts() if job is None else _expired_attempts().filter(job=job)
    return for_each(expired, _reap_attempt, on_error=_abandon_attempt)


def _expired_attempts() -> QuerySet[Attempt]:
    now = clock.now()
    return Attempt.objects.open().filter(reachability.long_enough(now), lease_until__lt=now)


def _reap_attempt(expired: Attempt) -> bool:
    """End an attempt unless its lease was renewed or it ended since it was read."""
    with transaction.atomic():
        locked = _expired_attempts().select_for_update(of=("self",), no_key=True).select_related("worker")
        attempt = locked.filter(pk=expired.pk).first()
        if attempt is None:
            return False
        if attempt.state == AttemptState.RUNNING:
            code, omitted = "lease_expired", "renew its lease"
        else:
            code, omitted = "unclaimed", "claim the attempt in time"
        message = f"worker {attempt.worker.name} did not {omitted}"
        finish(attempt.pk, Outcome.LOST, error={"code": code, "message": message})
    return True


def declare_lost(worker_id: int, *, name: str, pid: int) -> None:
    """Declare a dead worker lost and end its attempts at once.

    Args:
        worker_id: its row's key.
        name: the worker's name. The row must have the same name and `pid`, else nothing is done: the file
            that names the worker may be older than the database.
        pid: the worker's process id.
    """
    row = Worker.objects.filter(pk=worker_id, name=name, pid=pid).exclude(state=Worker.State.GONE)
    # The worker comes first: otherwise the work of its attempts could be placed on it again.
    if not row.update(state=Worker.State.LOST):
        return
    held = Attempt.objects.filter(worker_id=worker_id).open()
    # An attempt that cannot be ended here is left to the reaper.
    for_each(held, _end_with_worker)


def _end_with_worker(attempt: Attempt) -> None:
    error = WORKER_DIED if attempt.state == AttemptState.RUNNING else DIED_BEFORE
    finish(attempt.pk, Outcome.LOST, error=error)


def decline_assigned(worker_id: int, *, process: str = "") -> None:
    """Place nothing more on a worker that shuts down, and place its unclaimed attempts again.

    The worker repeats the call until it has ended: an attempt may be placed, or an administrator enable the
    worker, at the same moment.

    Args:
        worker_id: the worker's key.
        process: with which it was registered; empty: without one.
    """
    own = Worker.objects.filter(pk=worker_id, process=process)
    own.filter(state=Worker.State.UP).update(state=Worker.State.DRAINING)
    for_each(Attempt.objects.filter(worker__in=own, state=AttemptState.ASSIGNED), _decline)


def _decline(assigned: Attempt) -> None:
    with transaction.atomic():
        rows = Attempt.objects.filter(pk=assigned.pk, state=AttemptState.ASSIGNED)
        if rows.select_for_update(no_key=True).exists():
            finish(assigned.pk, Outcome.LOST, error=DECLINED)


def _abandon_attempt(attempt: Attempt, cause: Exception) -> None:
    """End an attempt for which `finish` raised an error, so that its slots become free."""
    error = {
        "code": "internal",
        "message": f"an internal error occurred when the attempt ended: {type(cause).__name__}: {cause}",
    }
    with transaction.atomic():
        still_expired = _expired_attempts().filter(pk=attempt.pk)
        # Its worker may have renewed the lease, or ended the attempt, since `finish` failed.
        if not still_expired.update(
            state=AttemptState.ENDED, outcome=Outcome.LOST, error=error, ended=clock.now()
        ):
            return
        job = attempt.job
        lock_root(job)
        if job.facts.has_trials:
            _end_trials(attempt, Outcome.FAILED, error)
        elif job.state in (JobState.STARTING, JobState.RUNNING):
            move(job, JobState.FAILED, fence=attempt.number, error=error)
            # Isolated: it may be what raised the error, and the slots must become free in any case.
            for_each([job], lambda failed: _report_failure(failed, error))


def _report_failure(job: Job, error: JobError) -> None:
    with transaction.atomic():
        results.report_failure(job, error)
