"""How an attempt ends: once, by its worker's word, because its lease ran out, or after its worker's death."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from jobs import clock, hints
from jobs.actions import results
from jobs.actions.isolation import each
from jobs.actions.transition import move, move_trial
from jobs.errors import StaleFence
from jobs.models import Attempt, Job, Trial, Worker
from jobs.states import AttemptState, Desired, JobState, Outcome, TrialState

COSTS_NO_RESTART = ("drained", "unclaimed", "no_space")

JobError = dict[str, Any]

WORKER_DIED: JobError = {
    "code": "worker_died",
    "message": "The worker was ended from outside; it has been started again.",
}
DIED_BEFORE: JobError = {"code": "unclaimed", "message": "The worker was ended before it had claimed it."}
LEFT_OPEN: JobError = {
    "code": "left_open",
    "message": "the runner said that its task was done, but not what became of this trial",
}


def finish(
    attempt_id: int, outcome: Outcome, *, error: JobError | None = None, result: dict[str, Any] | None = None
) -> None:
    """End an attempt once and let its job or trials follow. A second call with the same outcome is fine.

    Only trials that it has not brought to their end follow: those that it had begun as `outcome` says, while
    those that it had not turned to wait in the queue as if nothing had been.

    Args:
        attempt_id: the attempt.
        outcome: how it ended. `lost` puts the work back into the queue from its newest checkpoint.
        error: `code`, `message` and maybe `traceback`, for a failure.
        result: what the task's `result` event carried.

    Raises:
        StaleFence: it had ended otherwise.
    """
    with transaction.atomic():
        rows = Attempt.objects.filter(pk=attempt_id).open()
        if not rows.update(state=AttemptState.ENDED, outcome=outcome, error=error, ended=clock.now()):
            was = Attempt.objects.values_list("outcome", flat=True).get(pk=attempt_id)
            if was == outcome:
                return
            raise StaleFence(f"attempt {attempt_id} has ended as {was}")
        attempt = Attempt.objects.get(pk=attempt_id)
        # Locked: a stop that commits between our look and our move would leave the job in between.
        attempt.job = Job.objects.select_for_update(of=("self",)).get(pk=attempt.job_id)
        if attempt.job.facts.has_trials:
            _end_trials(attempt, outcome, error)
        else:
            _end_job(attempt, attempt.job, outcome, error, result or {})
        hints.send("schedule", job=attempt.job_id)


def _end_trials(attempt: Attempt, outcome: Outcome, error: JobError | None) -> None:
    """End the trials that the attempt had begun; of the others it lets go by having ended."""
    held = attempt.trials.filter(attempt=attempt.number, state__in=(TrialState.QUEUED, TrialState.RUNNING))
    left = list(held.order_by("number"))
    begun = [trial for trial in left if trial.state == TrialState.RUNNING]
    if outcome is Outcome.COMPLETED and left:
        outcome, error = (Outcome.LOST if begun else Outcome.FAILED), LEFT_OPEN
    if outcome is Outcome.FAILED and not begun:
        begun = left[:1]  # it could not even begin: without this it would be tried for ever
    for trial in begun:
        trial.job = attempt.job
        _end_trial(attempt, trial, outcome, error)


def _end_trial(attempt: Attempt, trial: Trial, outcome: Outcome, error: JobError | None) -> None:
    match outcome:
        case Outcome.FAILED:
            _set_running_executions(trial, TrialState.FAILED)
            move_trial(trial, TrialState.FAILED, fence=attempt.number, error=error)
        case Outcome.PAUSED:
            _set_running_executions(trial, TrialState.PAUSED)
            move_trial(trial, TrialState.PAUSED, fence=attempt.number)
        case Outcome.STOPPED | Outcome.KILLED:
            _set_running_executions(trial, TrialState.STOPPED)
            move_trial(trial, TrialState.STOPPED, fence=attempt.number)
        case Outcome.LOST:
            _lost_trial(trial, attempt, error)


def _set_running_executions(trial: Trial, to: TrialState) -> None:
    trial.executions.running().update(state=to)


def _lost_trial(trial: Trial, attempt: Attempt, error: JobError | None) -> None:
    if attempt.job.desired != Desired.RUNNING:
        to = TrialState.PAUSED if attempt.job.desired == Desired.PAUSED else TrialState.STOPPED
        _set_running_executions(trial, to)
        move_trial(trial, to, fence=attempt.number)
        return
    restarts = trial.restarts + _counts(error)
    if restarts > attempt.job.max_restarts:
        _set_running_executions(trial, TrialState.FAILED)
        move_trial(trial, TrialState.FAILED, fence=attempt.number, error=_worn_out(attempt, error))
        return
    _set_running_executions(trial, TrialState.QUEUED)
    move_trial(trial, TrialState.QUEUED, fence=attempt.number, restarts=restarts)


def _counts(error: JobError | None) -> int:
    """Say whether a loss uses up a restart."""
    return 0 if error is not None and error.get("code") in COSTS_NO_RESTART else 1


def _worn_out(attempt: Attempt, error: JobError | None) -> JobError:
    cause = (error or {}).get("message", "its worker was lost")
    return {
        "code": "too_many_restarts",
        "message": f"gave up after {attempt.job.max_restarts} restarts: {cause}",
    }


def _end_job(
    attempt: Attempt, job: Job, outcome: Outcome, error: JobError | None, result: dict[str, Any]
) -> None:
    if job.fence != attempt.number:
        return
    if job.state == JobState.STOPPING and outcome in (Outcome.COMPLETED, Outcome.FAILED):
        _ended_while_stopping(job, attempt, outcome, error, result)
        return
    match outcome:
        case Outcome.COMPLETED:
            results.done(job, result)
        case Outcome.FAILED:
            move(job, JobState.FAILED, fence=attempt.number, error=error)
            results.failed(job, error or {})
        case Outcome.PAUSED:
            move(job, JobState.PAUSED, fence=attempt.number)
        case Outcome.STOPPED | Outcome.KILLED:
            _stop(job, attempt, reason="killed" if outcome is Outcome.KILLED else "")
        case Outcome.LOST:
            _lost_job(job, attempt, error)


def _ended_while_stopping(
    job: Job, attempt: Attempt, outcome: Outcome, error: JobError | None, result: dict[str, Any]
) -> None:
    """It was told to stop and ended by itself meanwhile: it is stopped, and what it reached counts."""
    Job.objects.filter(pk=job.pk).update(results_json=result, error=error)
    move(job, JobState.STOPPED, fence=attempt.number)
    if outcome is Outcome.COMPLETED:
        results.take(job, result)
    else:
        results.failed(job, error or {})


def _stop(job: Job, attempt: Attempt, *, reason: str) -> None:
    if job.state == JobState.RUNNING or job.state == JobState.STARTING:
        move(job, JobState.STOPPING, fence=attempt.number, reason=reason)
    move(job, JobState.STOPPED, fence=attempt.number, reason=reason)
    results.stopped(job)


def _lost_job(job: Job, attempt: Attempt, error: JobError | None) -> None:
    if job.desired == Desired.PAUSED:
        move(job, JobState.PAUSED, fence=attempt.number, reason="lost")
        return
    if job.desired != Desired.RUNNING or job.state == JobState.STOPPING:
        _stop(job, attempt, reason="lost")
        return
    move(job, JobState.LOST, fence=attempt.number)
    restarts = job.restarts + _counts(error)
    if restarts > job.max_restarts:
        failure = _worn_out(attempt, error)
        move(job, JobState.FAILED, fence=attempt.number, error=failure)
        results.failed(job, failure)
    else:
        move(job, JobState.RETRYING, fence=attempt.number, restarts=restarts)


def reap(job: Job | None = None) -> int:
    """End every attempt, or those of one job, whose lease ran out; its work goes back into the queue.

    Returns:
        How many.
    """
    expired = _expired() if job is None else _expired().filter(job=job)
    return each(expired, _reap, otherwise=_give_up)


def _expired() -> QuerySet[Attempt]:
    return Attempt.objects.open().filter(lease_until__lt=clock.now())


def _reap(expired: Attempt) -> bool:
    """End an attempt unless it was renewed or ended since we looked: its worker believes the renewal."""
    with transaction.atomic():
        locked = _expired().select_for_update(of=("self",)).select_related("worker")
        attempt = locked.filter(pk=expired.pk).first()
        if attempt is None:
            return False
        claimed = attempt.state == AttemptState.RUNNING
        code, what = (
            ("lease_expired", "renewed its lease") if claimed else ("unclaimed", "claimed it in time")
        )
        message = f"worker {attempt.worker.name} has not {what}"
        finish(attempt.pk, Outcome.LOST, error={"code": code, "message": message})
    return True


def bury(worker_id: int, *, name: str, pid: int) -> None:
    """Declare a worker lost whose death somebody has seen, and give back at once what it held.

    In this order: what is given back must not be placed with it again.

    Args:
        worker_id: its row.
        name: what the row must say too, and
        pid: its process: the note that names it may be older than the database.
    """
    row = Worker.objects.filter(pk=worker_id, name=name, pid=pid).exclude(state=Worker.State.GONE)
    if not row.update(state=Worker.State.LOST):
        return
    held = Attempt.objects.filter(worker_id=worker_id).open()
    each(held, _end_with_worker)  # one that cannot be ended is left to the reaper


def _end_with_worker(attempt: Attempt) -> None:
    error = WORKER_DIED if attempt.state == AttemptState.RUNNING else DIED_BEFORE
    finish(attempt.pk, Outcome.LOST, error=error)


def _give_up(attempt: Attempt, cause: Exception) -> None:
    """End an attempt whose ending our own code cannot take in, so that its slots are free again."""
    error = {"code": "internal", "message": f"its end could not be recorded: {type(cause).__name__}: {cause}"}
    with transaction.atomic():
        _expired().filter(pk=attempt.pk).update(
            state=AttemptState.ENDED, outcome=Outcome.LOST, error=error, ended=clock.now()
        )
        job = attempt.job
        if job.facts.has_trials:
            _end_trials(attempt, Outcome.FAILED, error)
        elif job.state in (JobState.STARTING, JobState.RUNNING):
            move(job, JobState.FAILED, fence=attempt.number, error=error)
