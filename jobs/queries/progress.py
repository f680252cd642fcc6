"""How far a job is and how long it will take: measured durations, not hopes.

The share that is done is that of the units beside it, and of what the running trainings have done of theirs.
A root's time left is what its open parts still need: executions at the pace of the latest ones (epochs where
there are rungs, which differ in length) and as many at once as of late, retrainings from the epochs that
trials needed, the small steps at the median of earlier ones or, where there were none, measured in starts of
a runner.
"""

import datetime as dt
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

from django.db.models import Count, Q, Sum

from jobs import clock
from jobs.contracts.experiment import ExperimentSpec
from jobs.kinds import KINDS, PIPELINE
from jobs.models import Execution, Job, Worker
from jobs.queries import outcomes, running_executions, steps
from jobs.queries import pace as paces
from jobs.queries.pace import Pace
from jobs.states import FINAL, JobState, TrialState

USUAL_START_SECONDS = 3.0
NEVER_ALL = 0.9
"""The share of what it should take that something may be said to have done while it runs."""
MORE_EPOCHS = 1.2
"""How much later than a trial's the best epoch of a training comes that may wait longer for it."""


type Running = Mapping[running_executions.Key, running_executions.UnderWay]


class Progress(NamedTuple):
    """`done` of `total` units; `fraction` counts what runs too; `eta_seconds` is None while unknown."""

    done: float
    total: float
    unit: str
    fraction: float
    eta_seconds: float | None


def of(job: Job) -> Progress:
    """Return the progress of any job."""
    if job.state == JobState.COMPLETED:
        total, unit = _counted(job)[1:] if _counts_epochs(job) else _planned(job)
        return Progress(total, total, unit, 1.0, 0.0)
    done, total, unit = _counted(job)
    if job.state in (*FINAL, JobState.PAUSED) or job.started is None:
        return Progress(done, total, unit, done / total if total else 0.0, None)
    running = running_executions.of_search(job) if job.facts.has_trials else {}
    left = _seconds_left(job, total - done, running)
    if _counts_epochs(job):
        done = min(done + sum(each.epochs - each.before for each in running.values()), total)
        fraction = done / total if total else 0.0
    else:
        fraction = (done + sum(each.share for each in running.values())) / total if total else 0.0
    return Progress(done, total, unit, min(fraction, 0.99), left)


def _counted(job: Job) -> tuple[float, float, str]:
    """Return what is done of how much, in which unit."""
    total, unit = _planned(job)
    if not job.facts.has_trials:
        return job.progress.get("done", 0), total, unit
    executions = Execution.objects.filter(trial__job=job)
    if _counts_epochs(job):
        done = executions.aggregate(done=Sum("epochs"))["done"] or 0
        return done, max(total, done), unit
    return executions.filter(state__in=(TrialState.COMPLETED, TrialState.PRUNED)).count(), total, unit


def _planned(job: Job) -> tuple[float, str]:
    """Return how much there is to do, in which unit; of a search, without looking at its executions."""
    if not job.facts.has_trials:
        return job.progress.get("total", 0), job.progress.get("unit", "")
    search = outcomes.search_of(job)
    extra = job.trials.filter(source="hand").count()
    if job.revision is not None and _counts_epochs(job):
        whole = job.revision.spec.fit.epochs
        return (search.epochs_planned(whole) + extra * whole) * search.trainings(), "epochs"
    return (outcomes.trials_planned(job) + extra) * search.trainings(), "executions"


def _counts_epochs(job: Job) -> bool:
    """Say whether epochs are counted: trials that end at rungs differ in length."""
    return job.facts.has_trials and job.revision is not None and outcomes.search_of(job).info.has_rungs


def _seconds_left(job: Job, open_units: float, running: Running) -> float | None:
    if job.revision is None or job.parent_id is not None:
        return _own_seconds_left(job)
    spec, lanes = steps.followed(job), _lanes(job)
    search = _search_of(job)
    pace = paces.of(search) if search is not None else None
    if search is job:
        own = _search_seconds_left(job, pace, open_units, running, lanes)
    else:
        own = _own_seconds_left(job)
    if own is None:
        return None
    return own + _retrain_seconds_left(job, spec, pace, lanes) + _steps_seconds_left(job, spec, lanes)


def _search_of(job: Job) -> Job | None:
    """Return the search whose trials tell how long a training takes: the job, or where it was chosen from."""
    if (chosen := job.payload.chosen_trials()) is not None:
        return Job.objects.select_related("revision").filter(pk=chosen.search).first()
    return job if job.facts.has_trials else None


def _own_seconds_left(job: Job) -> float | None:
    if job.payload.task_done:
        return 0.0
    done, total = job.progress.get("done", 0), job.progress.get("total", 0)
    if not done or not total or job.started is None:
        return None
    elapsed = float(job.progress.get("time", 0)) - job.started.timestamp()
    return max(elapsed / float(done) * float(total - done), 0.0)


def _lanes(job: Job) -> int:
    live = Worker.objects.live(job.pool)
    slots = sum(slots // job.slots for slots in live.values_list("slots", flat=True))
    return max(slots, 1)


def _search_seconds_left(
    job: Job, pace: Pace | None, open_units: float, running: Running, lanes: int
) -> float | None:
    if pace is None:
        return None
    begun = _begun(job, pace, running)
    search = outcomes.search_of(job)
    at_once = min(lanes, search.parallel_trials or lanes, pace.at_once)
    if not _counts_epochs(job):  # the last trials leave slots empty: one trial's executions follow each other
        at_once = min(at_once, math.ceil(open_units / search.trainings()))
    return max(open_units * pace.seconds_per_unit - begun, 0.0) / max(at_once, 1.0)


def _begun(job: Job, pace: Pace, running: Running) -> float:
    """Return how many seconds of the work that counts as open the running trials have done.

    Where epochs are counted, that of the epochs since their rows were written; else, of each trial's open
    executions, what its time says or their epochs do, whichever is more, but never all.
    """
    if _counts_epochs(job):
        return pace.seconds_per_unit * sum(each.epochs - each.before for each in running.values())
    shares: dict[int, float] = defaultdict(float)
    for (trial, _), each in running.items():
        shares[trial] += each.share
    over = Count("executions", filter=Q(executions__state__in=(TrialState.COMPLETED, TrialState.PRUNED)))
    done = dict(job.trials.running().annotate(over=over).values_list("pk", "over"))
    executions, units = outcomes.search_of(job).trainings(), 0.0
    for trial, since in running_executions.begun(job).items():
        open_ = executions - done.get(trial, 0)
        passed = (clock.estimate() - since).total_seconds() / max(pace.seconds_per_unit, 1e-6)
        units += max(min(passed - (executions - open_), open_ * NEVER_ALL), shares[trial], 0.0)
    return units * pace.seconds_per_unit


def _retrain_seconds_left(job: Job, spec: ExperimentSpec, pace: Pace | None, lanes: int) -> float:
    if spec.search is None or spec.after.retrain is None or pace is None:
        return 0.0
    retrain = spec.after.retrain
    best = pace.best_epoch * MORE_EPOCHS
    epochs = min(best + retrain.patience, retrain.epochs_cap) + best * retrain.epochs_factor
    each = epochs * pace.seconds_per_epoch
    trained = [child for child in job.children.all() if child.facts.trains]
    finished = sum(child.state in FINAL for child in trained)
    spent = sum(
        min((clock.estimate() - child.started).total_seconds(), each * NEVER_ALL)
        for child in trained
        if child.state == JobState.RUNNING and child.started
    )
    return max((retrain.top - finished) * each - spent, 0.0) / min(lanes, retrain.top)


def _steps_seconds_left(job: Job, spec: ExperimentSpec, lanes: int) -> float:
    ended = Counter(child.kind for child in job.children.all() if child.state in FINAL)
    seconds = 0.0
    for kind in PIPELINE:
        starts = KINDS[kind].usual_starts
        if starts is not None and (left := KINDS[kind].planned(spec) - ended[kind]):
            seconds += left * _usual_seconds(kind, starts, job) / min(lanes, max(left, 1))
    return seconds


def _usual_seconds(kind: str, starts: float, root: Job) -> float:
    """Return the median duration of the latest completed jobs of a kind, or so many starts of a runner."""
    latest = Job.objects.filter(
        kind=kind, state=JobState.COMPLETED, started__isnull=False, finished__isnull=False
    ).order_by("-finished")[:9]
    durations = [_seconds(job.started, job.finished) for job in latest]
    return median(durations) if durations else starts * _start_seconds(root)


def _start_seconds(root: Job) -> float:
    """Return how long its first runner took to start; one that was warm tells nothing."""
    first = root.attempts.filter(claimed__isnull=False).order_by("number").first()
    measured = _seconds(first.claimed, root.started) if first is not None else 0.0
    return measured if measured >= 1.0 else USUAL_START_SECONDS


def _seconds(since: dt.datetime | None, until: dt.datetime | None) -> float:
    return (until - since).total_seconds() if since is not None and until is not None else 0.0
