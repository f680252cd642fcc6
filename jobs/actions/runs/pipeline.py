"""Advances root jobs through the steps in `jobs.kinds.PIPELINE`.

`advance` reads the rows and does the next step, if there is one. It is idempotent and may be called at any
time by any process: unique constraints prevent a step from being created twice.
"""

import logging
import traceback
from typing import Any

from django.db import transaction

from jobs import queue
from jobs.actions.isolation import for_each
from jobs.actions.runs import results
from jobs.actions.runs.kind_actions import JobError, actions_for, actions_of
from jobs.actions.runs.payloads import change_payload
from jobs.actions.transition import move, move_trials
from jobs.errors import Conflict, NotFound, StaleState
from jobs.kinds import PIPELINE
from jobs.logged_errors import log_errors
from jobs.models import Attempt, Job, TrialDecision
from jobs.queries.runs import steps
from jobs.queries.search import outcomes
from jobs.spec.error_codes import CODE_FATAL
from jobs.states import (
    FINAL,
    OPEN,
    WAITING,
    Desired,
    JobState,
    TrialState,
)

log = logging.getLogger(__name__)


def advance(root: Job) -> None:
    """Do a root job's next step, if there is one to do."""
    with transaction.atomic():
        # The scheduler, a chief and a user's request may advance the same root at the same time.
        locked = Job.objects.locked().filter(pk=root.pk).first()
        if locked is None:
            return  # deleted since it was listed
        root = locked
        if root.state in FINAL or root.state == JobState.DRAFT:
            return
        if root.desired != Desired.RUNNING:
            is_paused = root.state == JobState.PAUSED and root.desired == Desired.PAUSED
            if not is_paused:
                _halt_with_steps(root)
        elif (error := root.payload.failing) is not None:
            fail(root, error)
        else:
            actions_of(root).advance(root)


def _has_open_attempts(root: Job) -> bool:
    """Return whether a worker still holds an attempt for the root or its steps."""
    held = Attempt.objects.open()
    return held.filter(job__in=[root.pk, *root.descendants.values_list("pk", flat=True)]).exists()


def _halt_with_steps(root: Job) -> None:
    """Pause or stop the root and its steps, as far as no worker holds an attempt for them."""
    pausing = root.desired == Desired.PAUSED
    waiting = root.trials.waiting()
    move_trials(root, waiting, TrialState.PAUSED if pausing else TrialState.STOPPED)
    for child in root.descendants.unfinished():
        _halt_job(child, pausing=pausing)
    if _has_open_attempts(root):
        return
    if not pausing:
        move_trials(root, root.trials.filter(state=TrialState.PAUSED), TrialState.STOPPED)
    _halt_job(root, pausing=pausing)


def _halt_job(job: Job, *, pausing: bool) -> None:
    """Pause or stop a job without an open attempt. A queued job stays queued during a pause."""
    if job.attempts.open().exists():
        return
    if pausing:
        if job.state in (JobState.STARTING, JobState.RUNNING):
            move(job, JobState.PAUSED)
        return
    reason = "killed" if job.desired == Desired.KILLED else ""
    if job.state in (JobState.STARTING, JobState.RUNNING):
        move(job, JobState.STOPPING, reason=reason)
    # A lost job may only be stopped after it was queued again.
    if job.state == JobState.LOST:
        move(job, JobState.RETRYING)
    move(job, JobState.STOPPED, reason=reason, results_json=outcomes.results_of_root(job).to_json())
    results.report_stop(job)


def trials_keep_failing(root: Job, limit: int) -> bool:
    """Return whether the newest `limit` trials all failed. A trial that reached its rung's end did not."""
    ended = root.trials.filter(finished__isnull=False).exclude(state=TrialState.STOPPED)
    newest = list(ended.order_by("-finished").values_list("state", "finished")[:limit])
    if len(newest) < limit or any(state != TrialState.FAILED for state, _ in newest):
        return False
    # A trial that was promoted since then has no end now, but it had not failed.
    since = newest[-1][1]
    return not TrialDecision.objects.filter(trial__job=root, trial__finished=None, time__gt=since).exists()


def fatal_error(root: Job) -> JobError | None:
    """Return the fatal error in a search's code since the search was queued; None if there is none."""
    failed = root.trials.filter(state=TrialState.FAILED, error__code=CODE_FATAL)
    newest = failed.filter(finished__gte=root.queued or root.created).order_by("finished").first()
    return None if newest is None else newest.error


def give_up(root: Job) -> None:
    """Fail a search whose newest trials failed."""
    message = f"the newest trials failed one after another{_last_error(root)}"
    fail(root, {"code": "trials_keep_failing", "message": message})


def end_without_trial(root: Job) -> None:
    """Fail a search whose trials have all ended without a model."""
    message = f"no trial was completed, so there is no model to continue with{_last_error(root)}"
    fail(root, {"code": "no_trial_completed", "message": message})


def _last_error(root: Job) -> str:
    newest = root.trials.filter(state=TrialState.FAILED).order_by("-finished").first()
    cause = (newest.error or {}).get("message", "") if newest else ""
    return f"; the last error: {cause}" if cause else ""


def stop_waiting_trials(root: Job) -> None:
    """Stop the trials that no worker holds: those that wait for a slot, for a user, or at a rung."""
    waiting = root.trials.filter(state__in=(TrialState.QUEUED, TrialState.PAUSED))
    move_trials(root, waiting.not_held(), TrialState.STOPPED)


def fail(root: Job, error: JobError) -> None:
    """Fail a root once no worker holds an attempt for it. Until then, keep the error and start nothing."""
    stop_waiting_trials(root)
    for child in root.descendants.unfinished():
        _halt_job(child, pausing=False)
    if _has_open_attempts(root):
        if root.payload.failing is None:
            change_payload(root, failing=error)
            # Their workers renew the leases at once, and the answer is that the runners must stop.
            for worker_id, attempt_id in root.attempts.open().values_list("worker_id", "pk"):
                queue.wake_worker(worker_id, attempt_id)
        return
    # Only a job that has started may fail.
    if root.state == JobState.PAUSED:
        move(root, JobState.QUEUED)
    if root.state in WAITING:
        move(root, JobState.STARTING)
    final = JobState.STOPPED if root.state == JobState.STOPPING else JobState.FAILED
    results_so_far: dict[str, Any] = {}
    # The computation may be the reason why the root fails. A savepoint: an error in a query must not undo
    # the failure.
    with log_errors(log, "the results of job %s could not be computed", root.pk), transaction.atomic():
        results_so_far = outcomes.results_of_root(root).to_json()
    move(root, final, error=error, results_json=results_so_far)
    results.report_failure(root, error)


def start_next_step(root: Job) -> None:
    """Create the next step's jobs once the previous step is completed; after the last, complete the root."""
    if root.state in WAITING:
        move(root, JobState.STARTING)
    spec = steps.effective_spec(root)
    for kind in PIPELINE:
        try:
            children = actions_for(kind).children(root, spec)
        # A concurrent change is not the root's fault: the next call reads the rows again.
        except StaleState:
            raise
        # The model's name is taken, or a file is missing.
        except (Conflict, NotFound) as refusal:
            fail(root, {"code": refusal.code, "message": refusal.message})
            return
        if any(child.state not in FINAL for child in children):
            return
        failed = next((child for child in children if child.state != JobState.COMPLETED), None)
        if failed is not None:
            cause = (failed.error or {}).get("message", f"it was {failed.state}")
            message = f"step {failed.facts.noun} (job {failed.pk}) did not complete: {cause}"
            fail(root, {"code": "step_failed", "message": message})
            return
    complete(root)


def complete(root: Job) -> None:
    """Complete a root, with its own and its steps' results."""
    # A search needs no slot, so it may complete before it has started.
    if root.state in WAITING:
        move(root, JobState.STARTING)
    move(root, JobState.COMPLETED, results_json=outcomes.results_of_root(root).to_json())


def advance_all() -> None:
    """Advance every open root job. An unexpected error fails its root."""
    # `advance` reads the rest of each row under a lock.
    roots = Job.objects.roots().filter(state__in=OPEN).only("pk").order_by("pk")
    for_each(roots, advance, on_error=_fail_internally)


def advance_one(root: Job) -> None:
    """Advance a root job as `advance_all` does: errors fail the job and are not raised."""
    for_each([root], advance, on_error=_fail_internally)


def _fail_internally(root: Job, cause: Exception) -> None:
    error = {
        "code": "internal",
        "message": f"Trainyard could not advance this job: {type(cause).__name__}: {cause}",
        "traceback": "".join(traceback.format_exception(cause)),
    }
    with transaction.atomic():
        root = Job.objects.locked().get(pk=root.pk)
        if root.state not in FINAL:
            fail(root, error)
