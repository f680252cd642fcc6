"""Takes root jobs through the steps of `jobs.kinds.PIPELINE`.

`advance` looks at the rows and does the next step, or nothing. It may be called at any time by any
process, twice or after a crash: unique constraints keep a step from being made twice.
"""

import logging
import traceback
from typing import Any

from django.db import transaction

from jobs import queue
from jobs.actions import results
from jobs.actions.isolation import each
from jobs.actions.kind_actions import JobError, actions_for, actions_of
from jobs.actions.payloads import change_payload
from jobs.actions.transition import move, move_trials
from jobs.errors import Conflict, NotFound, StaleState
from jobs.kinds import PIPELINE
from jobs.models import Attempt, Job, TrialDecision
from jobs.queries import outcomes, steps
from jobs.states import (
    FINAL,
    OPEN,
    WAITING,
    Desired,
    JobState,
    TrialState,
)

log = logging.getLogger(__name__)

NO_TRIAL_COMPLETED = {
    "code": "no_trial_completed",
    "message": "no trial was completed, so there is nothing to go on with",
}


def advance(root: Job) -> None:
    """Do the next step of a root job, if there is one to do."""
    with transaction.atomic():
        root = Job.objects.select_for_update(of=("self",)).select_related("revision").get(pk=root.pk)
        if root.state in FINAL or root.state == JobState.DRAFT:
            return
        if root.desired == Desired.RUNNING:
            _go_on(root)
        elif root.state != JobState.PAUSED or root.desired != Desired.PAUSED:
            _wind_down(root)


def _busy(root: Job) -> bool:
    """Say whether a worker still holds anything of the family."""
    held = Attempt.objects.open()
    return held.filter(job__in=[root.pk, *root.family.values_list("pk", flat=True)]).exists()


def _wind_down(root: Job) -> None:
    """Bring a family that shall pause or stop to rest, once no worker holds a part of it."""
    pausing = root.desired == Desired.PAUSED
    waiting = root.trials.waiting()
    move_trials(root, waiting, TrialState.PAUSED if pausing else TrialState.STOPPED)
    for child in root.family.unfinished():
        _rest(child, pausing=pausing)
    if _busy(root):
        return
    if not pausing:
        move_trials(root, root.trials.filter(state=TrialState.PAUSED), TrialState.STOPPED)
    _rest(root, pausing=pausing)


def _rest(job: Job, *, pausing: bool) -> None:
    if job.attempts.open().exists():
        return
    reason = "killed" if job.desired == Desired.KILLED else ""
    if pausing:
        if job.state in (JobState.STARTING, JobState.RUNNING):
            move(job, JobState.PAUSED)
        return
    if job.state in (JobState.STARTING, JobState.RUNNING):
        move(job, JobState.STOPPING, reason=reason)
    if job.state == JobState.LOST:
        move(job, JobState.RETRYING)
    move(job, JobState.STOPPED, reason=reason, results_json=outcomes.results(job).to_json())
    results.stopped(job)


def _go_on(root: Job) -> None:
    if (error := root.payload.failing) is not None:
        fail(root, error)
    else:
        actions_of(root).advance(root)


def trials_keep_failing(root: Job, limit: int) -> bool:
    """Say whether the newest trials failed, so many in a row; one that ended a rung did not fail."""
    ended = root.trials.filter(finished__isnull=False).exclude(state=TrialState.STOPPED)
    newest = list(ended.order_by("-finished").values_list("state", "finished")[:limit])
    if len(newest) < limit or any(state != TrialState.FAILED for state, _ in newest):
        return False
    since = newest[-1][1]  # one that was promoted since then is open again, but had not failed
    return not TrialDecision.objects.filter(trial__job=root, trial__finished=None, time__gt=since).exists()


def give_up(root: Job) -> None:
    """Fail a search whose newest trials failed."""
    newest = root.trials.filter(state=TrialState.FAILED).order_by("-finished").first()
    cause = (newest.error or {}).get("message", "") if newest else ""
    message = f"the newest trials failed one after another; the last said: {cause}"
    error = {"code": "trials_keep_failing", "message": message}
    fail(root, error)


def fail(root: Job, error: JobError) -> None:
    """Start nothing more; fail the root once no worker holds a part of it, and keep the verdict till then."""
    waiting = root.trials.filter(state__in=(TrialState.QUEUED, TrialState.PAUSED))
    move_trials(root, waiting.not_held(), TrialState.STOPPED)
    for child in root.family.unfinished():
        _rest(child, pausing=False)
    if _busy(root):
        _say_verdict(root, error)
        return
    if root.state == JobState.PAUSED:
        move(root, JobState.QUEUED)
    if root.state in WAITING:
        move(root, JobState.STARTING)
    final = JobState.STOPPED if root.state == JobState.STOPPING else JobState.FAILED
    move(root, final, error=error, results_json=_reached(root))
    results.failed(root, error)


def _say_verdict(root: Job, error: JobError) -> None:
    """Keep why a root fails, and wake its own attempts, which renewals tell to stop now."""
    if root.payload.failing is not None:
        return
    change_payload(root, failing=error)
    for worker_id, attempt_id in root.attempts.open().values_list("worker_id", "pk"):
        queue.wake(worker_id, attempt_id)


def forget_verdict(root: Job) -> None:
    """Let a root that failed go on when it is tried again."""
    change_payload(root, failing=None)


def _reached(root: Job) -> dict[str, Any]:
    try:
        with transaction.atomic():  # a query that fails must not take the verdict along
            return outcomes.results(root).to_json()
    except Exception:  # what is broken may be just this; the verdict must stand all the same
        log.exception("what job %s reached cannot be summed up", root.pk)
        return {}


def follow(root: Job) -> None:
    """Make the next step's jobs once those of the step before are completed; after the last, end the root."""
    if root.state in WAITING:
        move(root, JobState.STARTING)
    spec = steps.followed(root)
    for kind in PIPELINE:
        try:
            children = actions_for(kind).children(root, spec)
        except StaleState:
            raise
        except (Conflict, NotFound) as refusal:  # the model's name is another project's, or a file is missing
            fail(root, {"code": refusal.code, "message": refusal.message})
            return
        failed = [child for child in children if child.state in (JobState.FAILED, JobState.STOPPED)]
        if any(child.state not in FINAL for child in children):
            return
        if failed:
            _fail_with(root, failed[0])
            return
    complete(root)


def complete(root: Job) -> None:
    """End a root with what it and the steps after it came to."""
    if root.state in WAITING:
        move(root, JobState.STARTING)
    move(root, JobState.COMPLETED, results_json=outcomes.results(root).to_json())


def _fail_with(root: Job, child: Job) -> None:
    cause = (child.error or {}).get("message", f"it was {child.state}")
    message = f"step {child.public_kind} (job {child.pk}) did not complete: {cause}"
    fail(root, {"code": "step_failed", "message": message})


def advance_all() -> None:
    """Advance every open root job; one that our own code cannot take further fails and says so."""
    open_roots = Job.objects.roots().filter(state__in=OPEN)
    each(open_roots.order_by("pk"), advance, otherwise=_break)


def advance_one(root: Job) -> None:
    """Advance a root job as `advance_all` does: what goes wrong with it does not end the caller."""
    each([root], advance, otherwise=_break)


def _break(root: Job, cause: Exception) -> None:
    error = {
        "code": "internal",
        "message": f"Trainyard could not take this job further: {type(cause).__name__}: {cause}",
        "traceback": "".join(traceback.format_exception(cause)),
    }
    with transaction.atomic():
        root = Job.objects.select_for_update(of=("self",)).get(pk=root.pk)
        if root.state not in FINAL:
            fail(root, error)
