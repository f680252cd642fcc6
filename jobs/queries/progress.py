"""How far a job is and how long it will take: measured durations, not hopes.

The share that is done is that of the units beside it, and of what the running trainings have done of theirs.
A root's time left is what its open parts still need: executions at the pace of the latest ones (epochs where
there are rungs, which differ in length) and as many at once as of late, retrainings from the epochs that
trials needed, the small steps at the median of earlier ones or, where there were none, measured in starts of
a runner.
"""

import datetime as dt
import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import NamedTuple

from django.db.models import Avg, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from jobs.models import Execution, Job, Trial, Worker
from jobs.queries import outcomes, steps, underway
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.search import RUNGS
from jobs.states import FINAL, JobKind, JobState, TrialState

USUAL_STARTS = {JobKind.ENSEMBLE: 1.0, JobKind.QUANTIZE: 2.0, JobKind.REGISTER: 0.5}
"""How long a small step takes, in starts of a runner: all that this machine's speed is known by at first."""

USUAL_START_SECONDS = 3.0
LATEST = 3
"""From this many trials on the later half sets the pace."""

MOST_LOOKED_AT = 200
"""Of thousands of trials the latest hundreds tell as much as the later half."""

MORE_EPOCHS = 1.2
"""How much later than a trial's the best epoch of a training comes that may wait longer for it."""


class Progress(NamedTuple):
    """`done` of `total` units; `fraction` counts what runs too; `eta_seconds` is None while unknown."""

    done: float
    total: float
    unit: str
    fraction: float
    eta_seconds: float | None


class _Pace(NamedTuple):
    """What the trials so far tell of the rest. A unit is an execution, or an epoch where there are rungs.

    `at_once` is how many trials ran beside each other, infinite while too little is known to say so.
    """

    seconds_per_unit: float
    seconds_per_epoch: float
    best_epoch: float
    at_once: float


def of(job: Job) -> Progress:
    """Return the progress of any job."""
    if job.state == JobState.COMPLETED:
        total, unit = _counted(job)[1:] if _counts_epochs(job) else _planned(job)
        return Progress(total, total, unit, 1.0, 0.0)
    done, total, unit = _counted(job)
    if job.state in (*FINAL, JobState.PAUSED) or job.started is None:
        return Progress(done, total, unit, done / total if total else 0.0, None)
    left = _seconds_left(job, total - done)
    running = underway.of_search(job).values() if job.kind == JobKind.SEARCH else ()
    if _counts_epochs(job):
        done = min(done + sum(each.epochs - each.before for each in running), total)
        fraction = done / total if total else 0.0
    else:
        fraction = (done + sum(each.share for each in running)) / total if total else 0.0
    return Progress(done, total, unit, min(fraction, 0.99), left)


def _counted(job: Job) -> tuple[float, float, str]:
    """Return what is done of how much, in which unit."""
    total, unit = _planned(job)
    if job.kind != JobKind.SEARCH:
        return job.progress.get("done", 0), total, unit
    executions = Execution.objects.filter(trial__job=job)
    if _counts_epochs(job):
        done = executions.aggregate(done=Sum("epochs"))["done"] or 0
        return done, max(total, done), unit
    return executions.filter(state__in=(TrialState.COMPLETED, TrialState.PRUNED)).count(), total, unit


def _planned(job: Job) -> tuple[float, str]:
    """Return how much there is to do, in which unit; of a search, without looking at its executions."""
    if job.kind != JobKind.SEARCH:
        return job.progress.get("total", 0), job.progress.get("unit", "")
    search = outcomes.search_of(job)
    extra = job.trials.filter(source="hand").count()
    if job.revision is not None and _counts_epochs(job):
        whole = job.revision.spec.fit.epochs
        return (search.epochs_planned(whole) + extra * whole) * search.trainings(), "epochs"
    return (outcomes.trials_planned(job) + extra) * search.trainings(), "executions"


def _counts_epochs(job: Job) -> bool:
    """Say whether epochs are counted: trials that end at rungs differ in length."""
    return (
        job.kind == JobKind.SEARCH and job.revision is not None and outcomes.search_of(job).algorithm in RUNGS
    )


def _seconds_left(job: Job, open_units: float) -> float | None:
    if job.revision is None or job.parent_id is not None:
        return _own_seconds_left(job)
    spec, lanes = steps.followed(job), _lanes(job)
    search = _search_of(job)
    pace = _pace(search) if search is not None else None
    own = _search_seconds_left(job, pace, open_units, lanes) if search is job else _own_seconds_left(job)
    if own is None:
        return None
    return own + _retrain_seconds_left(job, spec, pace, lanes) + _steps_seconds_left(job, spec, lanes)


def _search_of(job: Job) -> Job | None:
    """Return the search whose trials tell how long a training takes: the job, or where it was chosen from."""
    if (pooled := outcomes.pooled_of(job)) is not None:
        return Job.objects.select_related("revision").filter(pk=pooled.search).first()
    return job if job.kind == JobKind.SEARCH else None


def _own_seconds_left(job: Job) -> float | None:
    if job.payload.get("task_done"):
        return 0.0
    done, total = job.progress.get("done", 0), job.progress.get("total", 0)
    if not done or not total or job.started is None:
        return None
    elapsed = float(job.progress.get("time", 0)) - job.started.timestamp()
    return max(elapsed / float(done) * float(total - done), 0.0)


def _pace(job: Job) -> _Pace | None:
    ended = job.trials.filter(state__in=outcomes.MEASURED, started__isnull=False, finished__isnull=False)
    # One that was continued took as long as somebody wished, which says nothing of the others.
    timed = ended.filter(until=None).order_by("-finished")
    recent = list(ended.order_by("-finished").values_list("pk", flat=True)[:MOST_LOOKED_AT])
    measured = Execution.objects.filter(trial__in=recent, state__in=outcomes.MEASURED, epochs__gt=0)
    trained = measured.aggregate(epochs=Avg("epochs"), best=Avg(Coalesce("best_epoch", 1)))
    # The first trial of each lane also pays for its runner's start, and the first of each shape for its
    # compilation: the latest tell more of those to come.
    share = max(LATEST, timed[: 2 * MOST_LOOKED_AT].count() // 2)
    latest = list(timed.only("started", "finished", "bracket", "rung", "epochs")[:share])
    if not latest or trained["epochs"] is None:
        return None
    seconds = sum(_seconds(trial.started, trial.finished) for trial in latest)
    at_once = _at_once(job, latest)
    per_trial = seconds / len(latest) / outcomes.search_of(job).trainings()
    if steps := _steps_of_rungs(job):
        per_epoch = per_trial / fmean(_epochs_trained(trial, steps) for trial in latest)
        return _Pace(per_epoch, per_epoch, trained["best"], at_once)
    return _Pace(per_trial, per_trial / trained["epochs"], trained["best"], at_once)


def _at_once(job: Job, latest: Sequence[Trial]) -> float:
    """Return how many trials ran at once on average since the first of the latest began, while any ran.

    Slots are not enough to know it: other jobs hold some, and one stays empty while a trial is asked for.
    """
    if len(latest) < LATEST:
        return job.trials.filter(state=TrialState.RUNNING).count() or math.inf
    began = [trial.started for trial in latest if trial.started is not None]
    now, since = timezone.now(), min(began)
    beside = job.trials.filter(Q(state=TrialState.RUNNING) | Q(finished__gt=since), started__isnull=False)
    busy, covered, reached = 0.0, 0.0, since
    for trial in beside.only("state", "started", "finished").order_by("started"):
        end = trial.finished if trial.state != TrialState.RUNNING and trial.finished else now
        begin = max(trial.started or since, since)
        busy += max(_seconds(begin, end), 0.0)
        covered += max(_seconds(max(begin, reached), end), 0.0)
        reached = max(reached, end)
    return busy / covered if covered else math.inf


def _epochs_trained(trial: Trial, steps: list[list[int]]) -> int:
    """Return how many epochs the newest rung of a trial took."""
    if trial.epochs is None or trial.bracket >= len(steps) or trial.rung >= len(steps[trial.bracket]):
        return sum(steps[0])  # the whole: queued by hand, or of a bracket that a revision took away
    return steps[trial.bracket][trial.rung]


def _steps_of_rungs(job: Job) -> list[list[int]]:
    """Return how many epochs each rung of each bracket takes; nothing for a search without rungs."""
    search = outcomes.search_of(job)
    if job.revision is None or search.algorithm not in RUNGS:
        return []
    brackets = search.brackets(job.revision.spec.fit.epochs)
    return [[b - a for a, b in pairwise((0, *bracket.epochs))] for bracket in brackets]


def _lanes(job: Job) -> int:
    live = Worker.objects.filter(pool=job.pool, lease_until__gt=timezone.now(), state=Worker.State.UP)
    slots = sum(slots // job.slots for slots in live.values_list("slots", flat=True))
    return max(slots, 1)


def _search_seconds_left(job: Job, pace: _Pace | None, open_units: float, lanes: int) -> float | None:
    if pace is None:
        return None
    running = job.trials.filter(state=TrialState.RUNNING, started__isnull=False).values_list(
        "started", flat=True
    )
    begun = sum(_begun(started, pace, job) for started in running if started is not None)
    search = outcomes.search_of(job)
    at_once = min(lanes, search.parallel_trials or lanes, pace.at_once)
    if not _counts_epochs(job):  # the last trials leave slots empty: one trial's executions follow each other
        at_once = min(at_once, math.ceil(open_units / search.trainings()))
    return max(open_units * pace.seconds_per_unit - begun, 0.0) / max(at_once, 1.0)


def _begun(started: dt.datetime, pace: _Pace, job: Job) -> float:
    """Return the seconds of an open execution of a running trial that have passed."""
    trial_seconds = (timezone.now() - started).total_seconds()
    most = pace.seconds_per_unit * outcomes.search_of(job).trainings()
    return min(trial_seconds, most) % pace.seconds_per_unit if pace.seconds_per_unit else 0.0


def _retrain_seconds_left(job: Job, spec: ExperimentSpec, pace: _Pace | None, lanes: int) -> float:
    if spec.search is None or spec.after.retrain is None or pace is None:
        return 0.0
    retrain = spec.after.retrain
    best = pace.best_epoch * MORE_EPOCHS
    epochs = min(best + retrain.patience, retrain.epochs_cap) + best * retrain.epochs_factor
    each = epochs * pace.seconds_per_epoch
    trained = [child for child in job.children.all() if child.kind == JobKind.TRAIN]
    finished = sum(child.state in FINAL for child in trained)
    spent = sum(
        min((timezone.now() - child.started).total_seconds(), each * 0.9)
        for child in trained
        if child.state == JobState.RUNNING and child.started
    )
    return max((retrain.top - finished) * each - spent, 0.0) / min(lanes, retrain.top)


def _steps_seconds_left(job: Job, spec: ExperimentSpec, lanes: int) -> float:
    registered = len(spec.after.register_.what) if spec.after.register_ is not None else 0
    wanted = {
        JobKind.ENSEMBLE: int(spec.after.ensemble is not None),
        JobKind.QUANTIZE: int(spec.after.quantize is not None),
        JobKind.REGISTER: registered,
    }
    seconds = 0.0
    for kind, count in wanted.items():
        if left := count - sum(c.kind == kind and c.state in FINAL for c in job.children.all()):
            seconds += left * _usual_seconds(kind, job) / min(lanes, max(left, 1))
    return seconds


def _usual_seconds(kind: JobKind, root: Job) -> float:
    """Return the median duration of the latest completed jobs of a kind, or what it should be here."""
    latest = Job.objects.filter(
        kind=kind, state=JobState.COMPLETED, started__isnull=False, finished__isnull=False
    ).order_by("-finished")[:9]
    durations = [_seconds(job.started, job.finished) for job in latest]
    return median(durations) if durations else USUAL_STARTS[kind] * _start_seconds(root)


def _start_seconds(root: Job) -> float:
    """Return how long its first runner took to start; one that was warm tells nothing."""
    first = root.attempts.filter(claimed__isnull=False).order_by("number").first()
    measured = _seconds(first.claimed, root.started) if first is not None else 0.0
    return measured if measured >= 1.0 else USUAL_START_SECONDS


def _seconds(since: dt.datetime | None, until: dt.datetime | None) -> float:
    return (until - since).total_seconds() if since is not None and until is not None else 0.0
