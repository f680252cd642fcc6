"""An attempt from claim to end. Every write names its attempt, whose number is the fence."""

import logging
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from jobs import clock, hints, store
from jobs.actions import events, metrics, pipeline
from jobs.actions.transition import move, move_trial
from jobs.errors import StaleFence, StaleState
from jobs.models import Artifact, Attempt, Checkpoint, Execution, Job, JobArtifact, Trial
from jobs.queries.chunks import Event
from jobs.spec import events as said
from jobs.states import AttemptState, Desired, JobState, Outcome, TrialState

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
COSTS_NO_RESTART = ("drained", "unclaimed", "no_space")

JobError = dict[str, Any]


def assigned_to(worker_id: int) -> list[Attempt]:
    """List the attempts placed on a worker that it has not claimed yet, oldest first."""
    rows = Attempt.objects.filter(worker_id=worker_id, state=AttemptState.ASSIGNED)
    return list(rows.select_related("job", "trial").order_by("assigned"))


def claim(attempt_id: int, *, worker_id: int) -> Attempt | None:
    """Take an assigned attempt: one row changes, or somebody else was faster and None comes back."""
    now = clock.now()
    claimed = Attempt.objects.filter(
        pk=attempt_id, worker_id=worker_id, state=AttemptState.ASSIGNED, lease_until__gt=now
    ).update(state=AttemptState.RUNNING, claimed=now, lease_until=clock.seconds_from_now(LEASE_SECONDS))
    return Attempt.objects.select_related("job", "trial").get(pk=attempt_id) if claimed else None


def renew(worker_id: int, attempt_ids: Sequence[int]) -> dict[int, Desired]:
    """Extend the leases of a worker's running attempts.

    Returns:
        For each attempt that is still the worker's own, what is wanted of its job. The runner of an
        attempt that is missing from the answer must be killed at once.
    """
    mine = Attempt.objects.filter(pk__in=attempt_ids, worker_id=worker_id, state=AttemptState.RUNNING)
    mine.update(lease_until=clock.seconds_from_now(LEASE_SECONDS))
    return {pk: Desired(desired) for pk, desired in mine.values_list("pk", "job__desired")}


def record(
    attempt_id: int,
    batch: Sequence[said.RunnerEvent],
    *,
    spool_position: int,
    stored: Mapping[str, store.StoredFile],
) -> None:
    """Write what a runner said, all or nothing.

    Args:
        attempt_id: the attempt.
        batch: its events in order.
        spool_position: bytes of the spool that this batch ends at; a batch already written is skipped.
        stored: for each `artifact` event's path, the file as it now lies in the store.

    Raises:
        StaleFence: the attempt is no longer running; nothing was written.
    """
    with transaction.atomic():
        attempt = _fenced(attempt_id)
        if attempt.spool_acked >= spool_position:
            return  # written by an earlier call whose answer was lost
        Attempt.objects.filter(pk=attempt.pk).update(spool_acked=spool_position)
        metrics.store(attempt, [event for event in batch if isinstance(event, said.Metric)])
        for event in batch:
            _apply(attempt, event, stored)
        numbered = [body for event in batch if (body := _public(attempt, event, stored)) is not None]
        events.append(attempt.job.root_id_or_self, numbered)


def _fenced(attempt_id: int) -> Attempt:
    rows = Attempt.objects.select_for_update(of=("self",)).select_related("job", "trial", "job__root")
    attempt = rows.filter(pk=attempt_id, state=AttemptState.RUNNING).first()
    if attempt is None:
        raise StaleFence(f"attempt {attempt_id} is not running any more")
    return attempt


def _apply(attempt: Attempt, event: said.RunnerEvent, stored: Mapping[str, store.StoredFile]) -> None:
    match event:
        case said.Started():
            _started(attempt, event)
        case said.Progress() if attempt.trial_id is None:
            progress = {"done": event.done, "total": event.total, "unit": event.unit, "time": event.time}
            Job.objects.filter(pk=attempt.job_id).update(progress=progress)
        case said.ExecutionDone():
            _execution(attempt, event)
        case said.CheckpointCommitted():
            _checkpoint(attempt, event)
        case said.ArtifactWritten():
            _artifact(attempt, event, stored[event.path])


def _started(attempt: Attempt, event: said.Started) -> None:
    attempt.record, attempt.resumed_from = event.record, event.resumed_from
    attempt.save(update_fields=["record", "resumed_from"])
    for job in {
        attempt.job.pk: attempt.job,
        attempt.job.root_id_or_self: attempt.job.root or attempt.job,
    }.values():
        if job.state == JobState.STARTING:
            move(job, JobState.RUNNING, started=job.started or clock.now())


def _execution(attempt: Attempt, event: said.ExecutionDone) -> None:
    Execution.objects.filter(trial__attempts=attempt, number=event.execution or 0).exclude(
        state=TrialState.COMPLETED
    ).update(
        state=event.state,
        score=event.score,
        best_epoch=event.best_epoch,
        epochs=event.epochs,
        metrics=event.metrics,
    )


def _checkpoint(attempt: Attempt, event: said.CheckpointCommitted) -> None:
    Checkpoint.objects.get_or_create(
        job_id=attempt.job_id,
        folder=event.folder,
        defaults={
            "trial_id": attempt.trial_id,
            "execution": event.execution,
            "attempt": attempt.number,
            "step": event.step,
            "epoch": event.epoch,
            "manifest": event.manifest,
            "bytes": event.bytes,
        },
    )


def _artifact(attempt: Attempt, event: said.ArtifactWritten, file: store.StoredFile) -> None:
    artifact, _ = Artifact.objects.get_or_create(digest=file.digest, defaults={"bytes": file.bytes})
    JobArtifact.objects.update_or_create(
        job_id=attempt.job_id,
        attempt=attempt.number,
        role=event.role,
        name=event.name,
        defaults={"trial_id": attempt.trial_id, "artifact": artifact, "meta": event.meta},
    )


def _public(
    attempt: Attempt, event: said.RunnerEvent, stored: Mapping[str, store.StoredFile]
) -> Event | None:
    """Return the event as readers see it, None for what another event tells."""
    if isinstance(event, said.Result | said.Failed | said.Yielded):
        return None
    body: Event = event.model_dump(mode="json", exclude_none=True)
    match event:
        case said.Started():
            body = {"type": "attempt", "time": event.time, "number": attempt.number}
            body["resumed_from"] = event.resumed_from
        case said.ArtifactWritten():
            file = stored[event.path]
            body |= {"digest": file.digest, "bytes": file.bytes}
            del body["path"]
        case said.CheckpointCommitted():
            del body["folder"]
        case said.ExecutionDone():
            body["score"] = event.score
        case said.Metric():
            body["points"] = [list(point) for point in event.points]
    body |= {"job": attempt.job_id, "attempt": attempt.number}
    if attempt.trial is not None:
        body["trial"] = attempt.trial.number
    return body


def finish(
    attempt_id: int, outcome: Outcome, *, error: JobError | None = None, result: dict[str, Any] | None = None
) -> None:
    """End an attempt once and let its job or trial follow. A second call with the same outcome is fine.

    Args:
        attempt_id: the attempt.
        outcome: how it ended. `lost` puts the work back into the queue from its newest checkpoint.
        error: `code`, `message` and maybe `traceback`, for a failure.
        result: what the task's `result` event carried.

    Raises:
        StaleFence: it had ended otherwise.
    """
    with transaction.atomic():
        rows = Attempt.objects.filter(pk=attempt_id).exclude(state=AttemptState.ENDED)
        if not rows.update(state=AttemptState.ENDED, outcome=outcome, error=error, ended=clock.now()):
            was = Attempt.objects.values_list("outcome", flat=True).get(pk=attempt_id)
            if was == outcome:
                return
            raise StaleFence(f"attempt {attempt_id} has ended as {was}")
        attempt = Attempt.objects.select_related("trial").get(pk=attempt_id)
        # Locked: a stop that commits between our look and our move would leave the job in between.
        attempt.job = Job.objects.select_for_update(of=("self",)).get(pk=attempt.job_id)
        if attempt.trial is not None:
            _end_trial(attempt, attempt.trial, outcome, error)
        else:
            _end_job(attempt, attempt.job, outcome, error, result or {})
        hints.send("schedule", job=attempt.job_id)


def _end_trial(attempt: Attempt, trial: Trial, outcome: Outcome, error: JobError | None) -> None:
    if trial.attempt != attempt.number:
        return  # a newer attempt has the trial
    match outcome:
        case Outcome.COMPLETED:
            score, std = _score(trial)
            move_trial(trial, TrialState.COMPLETED, fence=attempt.number, score=score, std=std, error=None)
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


def _score(trial: Trial) -> tuple[float | None, float | None]:
    """Return mean and spread over executions of each one's best epoch."""
    rows = trial.executions.filter(state=TrialState.COMPLETED).values_list("score", flat=True)
    scores = [score for score in rows if score is not None]
    return (fmean(scores), pstdev(scores)) if scores else (None, None)


def _set_running_executions(trial: Trial, to: TrialState) -> None:
    trial.executions.filter(state=TrialState.RUNNING).update(state=to)


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
            pipeline.task_done(job, result)
        case Outcome.FAILED:
            move(job, JobState.FAILED, fence=attempt.number, error=error)
            pipeline.task_failed(job, error or {})
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
    Job.objects.filter(pk=job.pk).update(results=result, error=error)
    move(job, JobState.STOPPED, fence=attempt.number)
    if outcome is Outcome.COMPLETED:
        pipeline.take_result(job, result)
    else:
        pipeline.task_failed(job, error or {})


def _stop(job: Job, attempt: Attempt, *, reason: str) -> None:
    if job.state == JobState.RUNNING or job.state == JobState.STARTING:
        move(job, JobState.STOPPING, fence=attempt.number, reason=reason)
    move(job, JobState.STOPPED, fence=attempt.number, reason=reason)
    pipeline.task_stopped(job)


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
        pipeline.task_failed(job, failure)
    else:
        move(job, JobState.RETRYING, fence=attempt.number, restarts=restarts)


def reap() -> int:
    """End every attempt whose lease ran out; its work goes back into the queue. Returns how many."""
    reaped = 0
    for attempt_id in list(_expired().values_list("pk", flat=True)):
        try:
            reaped += _reap(attempt_id)
        except StaleState as error:  # its job moves at this moment; the next round sees the new state
            log.warning("attempt %s cannot be ended yet: %s", attempt_id, error)
    return reaped


def _expired() -> QuerySet[Attempt]:
    return Attempt.objects.exclude(state=AttemptState.ENDED).filter(lease_until__lt=clock.now())


def _reap(attempt_id: int) -> bool:
    """End an attempt unless it was renewed or ended since we looked: its worker believes the renewal."""
    with transaction.atomic():
        attempt = (
            _expired().select_for_update(of=("self",)).select_related("worker").filter(pk=attempt_id).first()
        )
        if attempt is None:
            return False
        claimed = attempt.state == AttemptState.RUNNING
        code, what = (
            ("lease_expired", "renewed its lease") if claimed else ("unclaimed", "claimed it in time")
        )
        message = f"worker {attempt.worker.name} has not {what}"
        finish(attempt.pk, Outcome.LOST, error={"code": code, "message": message})
    return True
