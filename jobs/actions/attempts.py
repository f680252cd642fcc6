"""An attempt while it lives. Every write names its attempt, whose number is the fence."""

from collections.abc import Mapping, Sequence

from django.db import transaction

from jobs import clock, store
from jobs.actions import events, metrics
from jobs.actions.transition import move
from jobs.errors import StaleFence
from jobs.models import Artifact, Attempt, Checkpoint, Execution, Job, JobArtifact
from jobs.queries.chunks import Event
from jobs.spec import events as said
from jobs.states import AttemptState, Desired, JobState, TrialState

LEASE_SECONDS = 15.0


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
