"""Pauses, resumes, finishes, stops, kills and retries jobs; changes their priority, pool, labels or limit."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from jobs import access, hints, queue
from jobs.actions.audit import audit
from jobs.actions.code import own_code
from jobs.actions.job_locks import lock_root
from jobs.actions.people import quotas
from jobs.actions.runs import pipeline
from jobs.actions.runs.payloads import change_payload
from jobs.actions.search import early_end
from jobs.actions.search.trials import RESET
from jobs.actions.storage import deletions
from jobs.actions.transition import move, move_trial
from jobs.errors import Conflict, StaleState
from jobs.models import Attempt, Job, User
from jobs.queries.search import outcomes
from jobs.queries.search.outcomes import WITHDRAWN
from jobs.states import FINAL, Desired, JobState, TrialState

STOPPABLE = (
    JobState.QUEUED,
    JobState.STARTING,
    JobState.RUNNING,
    JobState.PAUSED,
    JobState.RETRYING,
    JobState.LOST,
)
VERBS = {Desired.PAUSED: "pause", Desired.STOPPED: "stop", Desired.KILLED: "kill"}
"""The verb for each request, for audit rows and messages."""


def pause(job: Job, *, by: User) -> Job:
    """Request a pause: runners write checkpoints and free their slots, then the state changes."""
    return _set_desired(job, Desired.PAUSED, allowed=(JobState.STARTING, JobState.RUNNING), by=by)


def stop(job: Job, *, by: User) -> Job:
    """Request a stop: runners write checkpoints and end. Results reached so far are kept."""
    return _set_desired(job, Desired.STOPPED, allowed=STOPPABLE, by=by)


def kill(job: Job, *, by: User) -> Job:
    """Request that runners are killed at once, without further checkpoints."""
    return _set_desired(job, Desired.KILLED, allowed=(*STOPPABLE, JobState.STOPPING), by=by)


def _with_steps(job: Job) -> list[Job]:
    """Return a job and its steps."""
    return [job, *Job.objects.filter(parent=job)]


def _set_desired(job: Job, desired: Desired, *, allowed: tuple[JobState, ...], by: User) -> Job:
    access.require(by, job.project, access.Action.WRITE)
    verb = VERBS[desired]
    with transaction.atomic():
        lock_root(job)
        changeable = Job.objects.filter(pk=job.pk, state__in=allowed).exclude(desired=desired)
        if not changeable.update(desired=desired):
            job.refresh_from_db()
            if job.desired == desired and job.state not in FINAL:
                raise StaleState(f"a request to {verb} job {job.pk} is already in progress")
            raise StaleState(f"job {job.pk} is {job.state}; it cannot {verb} now")
        # The steps too, since a worker reads the desired state of the job that its attempt belongs to.
        Job.objects.filter(parent=job).unfinished().update(desired=desired)
        job.refresh_from_db()
        if desired is not Desired.PAUSED and job.state == JobState.RUNNING:
            move(job, JobState.STOPPING, reason="killed" if desired is Desired.KILLED else "")
        _wake_workers(job)
        # What no worker holds is paused or stopped at once, so that a user need not wait for the scheduler.
        pipeline.advance(job)
        # Last: the changes above lock further rows.
        audit.record(f"job.{verb}", f"job:{job.pk}", by=by, project=job.project)
    job.refresh_from_db()
    return job


def _wake_workers(job: Job) -> None:
    """Notify the scheduler, and the workers that hold attempts for a job or its steps."""
    held = Attempt.objects.open().filter(job__in=_with_steps(job))
    for worker_id, attempt_id in held.values_list("worker_id", "pk"):
        queue.wake_worker(worker_id, attempt_id)
    hints.send("schedule", job=job.pk)


def resume(job: Job, *, by: User) -> Job:
    """Queue a paused job again. It resumes from its newest checkpoints under the same id.

    A job whose pause is still in progress continues to run.

    Raises:
        StaleState: the job is not paused, or its parent job is not to run.
    """
    own_code.require_right_to_job(by, job)
    with transaction.atomic():
        if job.parent_id is not None:
            # Locked, so that the parent cannot be paused or stopped before this step is queued.
            parent = Job.objects.locked().get(pk=job.parent_id)
            if parent.desired != Desired.RUNNING:
                raise StaleState(
                    f"job {job.pk} is a step of job {parent.pk}, which is not to run; resume that one"
                )
        paused = Job.objects.filter(pk=job.pk, desired=Desired.PAUSED).unfinished()
        if not paused.update(desired=Desired.RUNNING):
            job.refresh_from_db()
            raise StaleState(f"job {job.pk} is {job.state}; only a paused one can resume")
        Job.objects.filter(parent=job, desired=Desired.PAUSED).update(desired=Desired.RUNNING)
        _requeue_job(job, trials=(TrialState.PAUSED,), jobs=(JobState.PAUSED,), as_new=False)
        audit.record("job.resume", f"job:{job.pk}", by=by, project=job.project)
        _wake_workers(job)
    return job


def finish(job: Job, *, by: User) -> Job:
    """End a search with the trials it has, and continue with the steps after it.

    Running trials write a checkpoint and stop; waiting ones stop at once; no new ones are created. A paused
    search continues with its steps. An external search's scripts complete the trials that they hold.

    Raises:
        Conflict: the job is not a search.
        StaleState: the search has ended, stops, or is being finished, or none of its trials has a score.
    """
    access.require(by, job.project, access.Action.WRITE)
    if not job.facts.has_trials:
        raise Conflict(f"job {job.pk} ({job.facts.noun}) is not a search; only a search can be finished")
    with transaction.atomic():
        root = Job.objects.locked().get(pk=job.pk)
        _require_finishable(root)
        if root.desired == Desired.PAUSED:
            Job.objects.filter(pk=root.pk).update(desired=Desired.RUNNING)
            root.refresh_from_db()
            if root.state == JobState.PAUSED:
                move(root, JobState.QUEUED)
        early_end.begin_early_end(root, reason="finishing")
        pipeline.advance(root)
        # Last: the changes above lock further rows.
        audit.record("job.finish", f"job:{root.pk}", by=by, project=root.project)
    job.refresh_from_db()
    return job


def _require_finishable(root: Job) -> None:
    if root.state in FINAL:
        raise StaleState(f"search {root.pk} is {root.state}; only one that has not ended can be finished")
    if root.desired in (Desired.STOPPED, Desired.KILLED):
        raise StaleState(f"search {root.pk} is being {root.desired}; it cannot be finished now")
    if root.payload.finishing:
        raise StaleState(f"a request to finish search {root.pk} is already in progress")
    if root.payload.failing is not None:
        raise StaleState(f"search {root.pk} is failing; it cannot be finished now")
    if root.children.exists():
        raise StaleState(f"search {root.pk} has ended; the steps after it already run")
    if not outcomes.best_trials(root, limit=1):
        raise StaleState(
            f"no trial of search {root.pk} has a score yet, so there is nothing to continue with: wait for "
            "the first one to complete, or stop the search"
        )


def _requeue_job(
    job: Job, *, trials: tuple[TrialState, ...], jobs: tuple[JobState, ...], as_new: bool
) -> int:
    """Queue a job's trials, the job and its steps again, as far as they are in the given states.

    Args:
        job: the job.
        trials: the states in which trials are queued.
        jobs: the states in which the job and its steps are queued.
        as_new: whether the earlier run's errors, restarts and times are cleared.

    Returns:
        How many trials and jobs were queued.
    """
    count = 0
    trial_fields = RESET if as_new else {"attempt": 0, "finished": None}
    job_fields: dict[str, Any] = {"restarts": 0, "error": None} if as_new else {}
    for trial in job.trials.filter(state__in=trials).exclude(source=WITHDRAWN):
        # It was not paused by a user; only a promotion resumes it.
        if trial.waits_at_rung:
            continue
        trial.executions.filter(state__in=(*trials, TrialState.RUNNING)).update(state=TrialState.QUEUED)
        move_trial(trial, TrialState.QUEUED, **trial_fields)
        count += 1
    for member in _with_steps(job):
        member.refresh_from_db()
        if member.state in jobs:
            # Its minutes begin again.
            new_minutes: dict[str, Any] = (
                {"started": None} if as_new and member.max_minutes is not None else {}
            )
            move(member, JobState.QUEUED, **job_fields, **new_minutes)
            count += 1
    job.refresh_from_db()
    return count


def retry(job: Job, *, by: User) -> Job:
    """Queue a job's failed or stopped parts again, and only those.

    Raises:
        StaleState: the job is not final, or nothing in it failed.
        QuotaReached: the project has too many unfinished jobs.
    """
    own_code.require_right_to_job(by, job)
    root = job.root or job
    if job.facts.retry_refusal:
        raise StaleState(f"job {job.pk} {job.facts.retry_refusal}")
    with transaction.atomic():
        if job.state not in FINAL or root.state not in FINAL:
            raise StaleState(f"job {job.pk} is {job.state}; only a final one can be retried")
        deletions.require_present(root)
        if root.project is not None:
            quotas.require_room_for_job(root.project)
        Job.objects.filter(pk__in=[member.pk for member in _with_steps(root)]).update(desired=Desired.RUNNING)
        change_payload(root, failing=None)
        # The user ended the search of a finished job: only its steps run again.
        again = () if root.payload.finishing else (TrialState.FAILED, TrialState.STOPPED)
        if not root.children.exists():
            # Its minutes begin again.
            Job.objects.filter(pk=root.pk).update(started=None)
        count = _requeue_job(root, trials=again, jobs=(JobState.FAILED, JobState.STOPPED), as_new=True)
        if not count:
            raise StaleState(f"nothing in job {root.pk} failed; “Run again” repeats all of it")
        # A search is completed although some trials failed. It must run again for them.
        if root.state == JobState.COMPLETED:
            move(root, JobState.QUEUED)
        audit.record("job.retry", f"job:{root.pk}", by=by, project=root.project)
    job.refresh_from_db()
    return job


def change(
    job: Job,
    *,
    priority: int | None = None,
    pool: str | None = None,
    labels: Mapping[str, str] | None = None,
    max_minutes: float | None = None,
    by: User,
) -> Job:
    """Change a job's priority, pool, labels or time limit. Running parts stay on their worker.

    Its steps get the priority, the pool and the labels too.

    Raises:
        Conflict: the job is final, or a search, which has a time limit of its own.
    """
    access.require(by, job.project, access.Action.WRITE)
    fields: dict[str, Any] = {}
    if priority is not None:
        fields["priority"] = priority
    if pool is not None:
        fields["pool"] = pool
    if labels is not None:
        fields["labels"] = dict(labels)
    limit: dict[str, Any] = {} if max_minutes is None else {"max_minutes": max_minutes}
    if not fields and not limit:
        return job
    if limit and job.facts.has_trials:
        raise Conflict(f"job {job.pk} is a search; change its search.max_minutes instead")
    with transaction.atomic():
        if not Job.objects.filter(pk=job.pk).unfinished().update(**fields, **limit):
            raise Conflict(
                f"job {job.pk} is {job.state}; its priority, pool, labels and time limit can no longer be "
                "changed"
            )
        if fields:
            Job.objects.filter(parent=job).unfinished().update(**fields)
        audit.record("job.change", f"job:{job.pk}", by=by, project=job.project, **fields, **limit)
        hints.send("schedule", job=job.pk)
    job.refresh_from_db()
    return job
