"""Pauses, resumes, stops, kills and retries jobs, and changes their priority or pool."""

from typing import Any

from django.db import transaction

from jobs import access, hints, queue
from jobs.actions import audit, pipeline
from jobs.actions.payloads import change_payload
from jobs.actions.transition import move, move_trial
from jobs.errors import Conflict, StaleState
from jobs.models import Attempt, Job, User
from jobs.queries.outcomes import WITHDRAWN
from jobs.states import FINAL, Desired, JobState, TrialState


def pause(job: Job, *, by: User) -> Job:
    """Request a pause: runners write checkpoints and free their slots, then the state changes."""
    return _set_desired(job, Desired.PAUSED, frm=(JobState.STARTING, JobState.RUNNING), by=by)


def stop(job: Job, *, by: User) -> Job:
    """Request a stop: runners write checkpoints and end. Results reached so far are kept."""
    return _set_desired(job, Desired.STOPPED, frm=_NOT_FINAL, by=by)


def kill(job: Job, *, by: User) -> Job:
    """Request that runners are killed at once, without further checkpoints."""
    return _set_desired(job, Desired.KILLED, frm=(*_NOT_FINAL, JobState.STOPPING), by=by)


_NOT_FINAL = (
    JobState.QUEUED,
    JobState.STARTING,
    JobState.RUNNING,
    JobState.PAUSED,
    JobState.RETRYING,
    JobState.LOST,
)


def _family(job: Job) -> list[Job]:
    return [job, *Job.objects.filter(parent=job)]


def _set_desired(job: Job, desired: Desired, *, frm: tuple[JobState, ...], by: User) -> Job:
    access.require(by, job.project, access.Action.WRITE)
    with transaction.atomic():
        if not Job.objects.filter(pk=job.pk, state__in=frm).exclude(desired=desired).update(desired=desired):
            raise _refusal(job, desired)
        Job.objects.filter(parent=job).unfinished().update(desired=desired)
        job.refresh_from_db()
        if desired is not Desired.PAUSED and job.state == JobState.RUNNING:
            move(job, JobState.STOPPING, reason="killed" if desired is Desired.KILLED else "")
        audit.record(f"job.{_VERB[desired]}", f"job:{job.pk}", by=by, project=job.project)
        _wake_family(job)
        pipeline.advance(job)
    job.refresh_from_db()
    return job


_VERB = {Desired.PAUSED: "pause", Desired.STOPPED: "stop", Desired.KILLED: "kill", Desired.RUNNING: "resume"}


def _refusal(job: Job, desired: Desired) -> StaleState:
    job.refresh_from_db()
    if job.desired == desired and job.state not in FINAL:
        return StaleState(f"a request to {_VERB[desired]} job {job.pk} is already in progress")
    return StaleState(f"job {job.pk} is {job.state}; it cannot {_VERB[desired]} now")


def _wake_family(job: Job) -> None:
    held = Attempt.objects.open().filter(job__in=_family(job))
    for worker_id, attempt_id in held.values_list("worker_id", "pk"):
        queue.wake(worker_id, attempt_id)
    hints.send("schedule", job=job.pk)


def resume(job: Job, *, by: User) -> Job:
    """Queue a paused job again; it resumes from its newest checkpoints under the same id.

    A job whose pause is still in progress continues to run.

    Raises:
        StaleState: the job is not paused, or its parent job is not to run.
    """
    access.require(by, job.project, access.Action.WRITE)
    with transaction.atomic():
        if job.parent_id is not None:
            parent = Job.objects.select_for_update(of=("self",)).get(pk=job.parent_id)
            if parent.desired != Desired.RUNNING:
                raise StaleState(
                    f"job {job.pk} is a step of job {parent.pk}, which is not to run; resume that one"
                )
        paused = Job.objects.filter(pk=job.pk, desired=Desired.PAUSED).unfinished()
        if not paused.update(desired=Desired.RUNNING):
            job.refresh_from_db()
            raise StaleState(f"job {job.pk} is {job.state}; only a paused one can resume")
        Job.objects.filter(parent=job, desired=Desired.PAUSED).update(desired=Desired.RUNNING)
        _requeue(job, trials=(TrialState.PAUSED,), jobs=(JobState.PAUSED,))
        audit.record("job.resume", f"job:{job.pk}", by=by, project=job.project)
        _wake_family(job)
    return job


def _requeue(job: Job, *, trials: tuple[TrialState, ...], jobs: tuple[JobState, ...], **fields: Any) -> int:
    count = 0
    for trial in job.trials.filter(state__in=trials).exclude(source=WITHDRAWN):
        if trial.waits_at_rung:
            continue  # it was not paused by a user; only a promotion resumes it
        trial.executions.filter(state__in=(*trials, TrialState.RUNNING)).update(state=TrialState.QUEUED)
        again = {"restarts": 0} if fields else {}
        move_trial(trial, TrialState.QUEUED, attempt=0, finished=None, **again)
        count += 1
    for member in _family(job):
        member.refresh_from_db()
        if member.state in jobs:
            move(member, JobState.QUEUED, **fields)
            count += 1
    job.refresh_from_db()
    return count


def retry(job: Job, *, by: User) -> Job:
    """Queue the failed or stopped parts of a job again, and only those.

    Raises:
        StaleState: the job is not final, or nothing in it failed.
    """
    access.require(by, job.project, access.Action.WRITE)
    root = job.root or job
    if job.facts.retry_refusal:
        raise StaleState(f"job {job.pk} {job.facts.retry_refusal}")
    with transaction.atomic():
        if job.state not in FINAL or root.state not in FINAL:
            raise StaleState(f"job {job.pk} is {job.state}; only a final one can be retried")
        Job.objects.filter(pk__in=[member.pk for member in _family(root)]).update(desired=Desired.RUNNING)
        change_payload(root, failing=None)
        again = (TrialState.FAILED, TrialState.STOPPED)
        count = _requeue(root, trials=again, jobs=(JobState.FAILED, JobState.STOPPED), restarts=0, error=None)
        if not count:
            raise StaleState(f"nothing in job {root.pk} failed; clone the job to run all of it again")
        if root.state == JobState.COMPLETED:
            move(root, JobState.QUEUED)
        audit.record("job.retry", f"job:{root.pk}", by=by, project=root.project)
    job.refresh_from_db()
    return job


def change(job: Job, *, priority: int | None = None, pool: str | None = None, by: User) -> Job:
    """Change the priority or pool of a job and its steps. Running parts stay on their worker.

    Raises:
        Conflict: the job is final.
    """
    access.require(by, job.project, access.Action.WRITE)
    fields: dict[str, Any] = {}
    if priority is not None:
        fields["priority"] = priority
    if pool is not None:
        fields["pool"] = pool
    with transaction.atomic():
        if not Job.objects.filter(pk=job.pk).unfinished().update(**fields):
            raise Conflict(f"job {job.pk} is {job.state}; its priority and pool can no longer be changed")
        Job.objects.filter(parent=job).unfinished().update(**fields)
        audit.record("job.change", f"job:{job.pk}", by=by, project=job.project, **fields)
        hints.send("schedule", job=job.pk)
    job.refresh_from_db()
    return job
