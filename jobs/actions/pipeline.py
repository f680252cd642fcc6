"""What follows what: a search's trials, then retraining, ensemble, quantization, registration.

`advance` looks at the rows and does the next step, or nothing. It may be called at any time by any
process, twice or after a crash: unique constraints keep a step from being made twice.
"""

import logging
import traceback
from typing import Any

from django.db import transaction

from jobs import queue
from jobs.actions import after, external_search, results, suggest
from jobs.actions.isolation import each
from jobs.actions.transition import move, move_trials
from jobs.contracts.experiment import ExperimentSpec
from jobs.errors import Conflict, NotFound, StaleState
from jobs.models import Attempt, Job, TrialDecision
from jobs.queries import outcomes, steps
from jobs.queries.outcomes import EXHAUSTED, FAILING
from jobs.states import (
    FINAL,
    OPEN,
    WAITING,
    Desired,
    JobKind,
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
    move(job, JobState.STOPPED, reason=reason, results=outcomes.results(job))
    results.stopped(job)


def _go_on(root: Job) -> None:
    if error := root.payload.get(FAILING):
        _fail(root, error)
        return
    if root.is_outside:
        _go_on_outside(root)
        return
    if root.kind == JobKind.SEARCH and not _search_is_over(root):
        return
    if not outcomes.leads_on(root) or root.revision is None:
        return  # one task, ended by its result
    if root.kind == JobKind.TRAIN and not root.payload.get("task_done"):
        return
    if root.state == JobState.QUEUED or root.state == JobState.RETRYING:
        move(root, JobState.STARTING)
    _follow(root, steps.followed(root))


def _search_is_over(root: Job) -> bool:
    """Ask for what the search still needs; say whether all its trials are final."""
    search = outcomes.search_of(root)
    if _keeps_failing(root, search.max_consecutive_failures):
        _give_up(root)
        return False
    if not suggest.is_over(root, search):
        suggest.ask(root, search)
        return False
    return not root.trials.unfinished().exists()


def _go_on_outside(root: Job) -> None:
    """End a search of outside scripts when it is over, or say that nobody serves it."""
    search = outcomes.outside_of(root)
    made = root.trials.filter(source="algorithm").count()
    if _keeps_failing(root, search.max_consecutive_failures):
        _give_up(root)
    elif root.trials.unfinished().exists() or (made < search.planned() and not root.payload.get(EXHAUSTED)):
        external_search.rest_without_chief(root)
    elif not outcomes.best_trials(root, limit=1):
        _fail(root, NO_TRIAL_COMPLETED)
    else:
        if root.state in WAITING:
            move(root, JobState.STARTING)
        move(root, JobState.COMPLETED, results=outcomes.results(root))


def _keeps_failing(root: Job, limit: int) -> bool:
    """Say whether the newest trials failed, so many in a row; one that ended a rung did not fail."""
    ended = root.trials.filter(finished__isnull=False).exclude(state=TrialState.STOPPED)
    newest = list(ended.order_by("-finished").values_list("state", "finished")[:limit])
    if len(newest) < limit or any(state != TrialState.FAILED for state, _ in newest):
        return False
    since = newest[-1][1]  # one that was promoted since then is open again, but had not failed
    return not TrialDecision.objects.filter(trial__job=root, trial__finished=None, time__gt=since).exists()


def _give_up(root: Job) -> None:
    newest = root.trials.filter(state=TrialState.FAILED).order_by("-finished").first()
    cause = (newest.error or {}).get("message", "") if newest else ""
    message = f"the newest trials failed one after another; the last said: {cause}"
    error = {"code": "trials_keep_failing", "message": message}
    _fail(root, error)


def _fail(root: Job, error: dict[str, Any]) -> None:
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
    move(root, final, error=error, results=_reached(root))
    results.failed(root, error)


def _say_verdict(root: Job, error: dict[str, Any]) -> None:
    """Keep why a root fails, and wake its own attempts, which renewals tell to stop now."""
    if FAILING in root.payload:
        return
    root.payload = root.payload | {FAILING: error}
    root.save(update_fields=["payload"])
    held = root.attempts.open()
    for worker_id, attempt_id in held.values_list("worker_id", "pk"):
        queue.wake(worker_id, attempt_id)


def forget_verdict(root: Job) -> None:
    """Let a root that failed go on when it is tried again."""
    root.payload = {name: value for name, value in root.payload.items() if name != FAILING}
    root.save(update_fields=["payload"])


def _reached(root: Job) -> dict[str, Any]:
    try:
        with transaction.atomic():  # a query that fails must not take the verdict along
            return outcomes.results(root)
    except Exception:  # what is broken may be just this; the verdict must stand all the same
        log.exception("what job %s reached cannot be summed up", root.pk)
        return {}


def _follow(root: Job, spec: ExperimentSpec) -> None:
    """Make the next step's jobs once those of the step before are completed."""
    if root.kind == JobKind.SEARCH and not outcomes.best_trials(root, limit=1):
        _fail(root, NO_TRIAL_COMPLETED)
        return
    for make in (after.train, after.ensemble, after.quantize, after.register):
        try:
            children = make(root, spec)
        except StaleState:
            raise
        except (Conflict, NotFound) as refusal:  # the model's name is another project's, or a file is missing
            _fail(root, {"code": refusal.code, "message": refusal.message})
            return
        failed = [child for child in children if child.state in (JobState.FAILED, JobState.STOPPED)]
        if any(child.state not in FINAL for child in children):
            return
        if failed:
            _fail_with(root, failed[0])
            return
    move(root, JobState.COMPLETED, results=outcomes.results(root))


def _fail_with(root: Job, child: Job) -> None:
    cause = (child.error or {}).get("message", f"it was {child.state}")
    message = f"step {child.kind} (job {child.pk}) did not complete: {cause}"
    _fail(root, {"code": "step_failed", "message": message})


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
            _fail(root, error)
