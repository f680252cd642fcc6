"""Computes the progress of a job and estimates its remaining time from measured durations.

The fraction counts completed units and the completed part of running executions. The remaining time of a root
job is the sum over its steps: remaining executions (epochs if the search has rungs, whose lengths differ) at
the duration and the concurrency of the latest ones; retrainings by the epochs that trials needed; other steps
by the median of earlier ones, or by multiples of a runner's start if there were none.
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
from jobs.queries import outcomes, running_executions, steps, trial_durations
from jobs.queries.trial_durations import TrialDurations
from jobs.states import FINAL, JobState, TrialState

USUAL_START_SECONDS = 3.0
MAX_RUNNING_FRACTION = 0.9
"""While a task runs, at most this fraction of its expected time counts as done."""
RETRAIN_EPOCHS_FACTOR = 1.2
"""Best epoch of a retraining relative to a trial. It is later, because the patience is longer."""


type Running = Mapping[running_executions.Key, running_executions.RunningExecution]


class Progress(NamedTuple):
    """`done` of `total` units. `fraction` includes running executions. `eta_seconds` is None if unknown."""

    done: float
    total: float
    unit: str
    fraction: float
    eta_seconds: float | None


def of_job(job: Job) -> Progress:
    """Return the progress of a job of any kind."""
    if job.state == JobState.COMPLETED:
        total, unit = _counted(job)[1:] if _counts_epochs(job) else _planned(job)
        return Progress(total, total, unit, 1.0, 0.0)
    done, total, unit = _counted(job)
    if job.state in (*FINAL, JobState.PAUSED) or job.started is None:
        return Progress(done, total, unit, done / total if total else 0.0, None)
    running = running_executions.of_search(job) if job.facts.has_trials else {}
    eta = _seconds_left(job, total - done, running)
    if _counts_epochs(job):
        done = min(done + sum(each.epochs - each.stored_epochs for each in running.values()), total)
        fraction = done / total if total else 0.0
    else:
        fraction = (done + sum(each.fraction for each in running.values())) / total if total else 0.0
    return Progress(done, total, unit, min(fraction, 0.99), eta)


def _counted(job: Job) -> tuple[float, float, str]:
    """Return the number of completed units, of all units, and the unit."""
    total, unit = _planned(job)
    if not job.facts.has_trials:
        return job.progress.get("done", 0), total, unit
    executions = Execution.objects.filter(trial__job=job)
    if _counts_epochs(job):
        done = executions.aggregate(done=Sum("epochs"))["done"] or 0
        return done, max(total, done), unit
    return executions.filter(state__in=(TrialState.COMPLETED, TrialState.PRUNED)).count(), total, unit


def _planned(job: Job) -> tuple[float, str]:
    """Return the number of units and the unit; for a search, without a query of its executions."""
    if not job.facts.has_trials:
        return job.progress.get("total", 0), job.progress.get("unit", "")
    search = outcomes.search_of(job)
    extra = job.trials.filter(source="hand").count()
    if job.revision is not None and _counts_epochs(job):
        whole = job.revision.spec.fit.epochs
        return (search.epochs_planned(whole) + extra * whole) * search.trainings(), "epochs"
    return (outcomes.trials_planned(job) + extra) * search.trainings(), "executions"


def _counts_epochs(job: Job) -> bool:
    """Return whether the unit is an epoch. Trials that end at rungs differ in length."""
    return job.facts.has_trials and job.revision is not None and outcomes.search_of(job).info.has_rungs


def _seconds_left(job: Job, open_units: float, running: Running) -> float | None:
    if job.revision is None or job.parent_id is not None:
        return _own_seconds_left(job)
    spec, concurrency = steps.effective_spec(job), _max_concurrency(job)
    search = _search_of(job)
    durations = trial_durations.measure(search) if search is not None else None
    if search is job:
        own = _search_seconds_left(job, durations, open_units, running, concurrency)
    else:
        own = _own_seconds_left(job)
    if own is None:
        return None
    retrain = _retrain_seconds_left(job, spec, durations, concurrency)
    return own + retrain + _steps_seconds_left(job, spec, concurrency)


def _search_of(job: Job) -> Job | None:
    """Return the search whose trials measure the duration of a training."""
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


def _max_concurrency(job: Job) -> int:
    """Return how many attempts of the job fit into the slots of its pool."""
    live = Worker.objects.live(job.pool)
    slots = sum(slots // job.slots for slots in live.values_list("slots", flat=True))
    return max(slots, 1)


def _search_seconds_left(
    job: Job, durations: TrialDurations | None, open_units: float, running: Running, max_concurrency: int
) -> float | None:
    if durations is None:
        return None
    done = _seconds_done(job, durations, running)
    search = outcomes.search_of(job)
    concurrency = min(max_concurrency, search.parallel_trials or max_concurrency, durations.concurrency)
    if not _counts_epochs(
        job
    ):  # the executions of a trial run one after another, so the last leave slots empty
        concurrency = min(concurrency, math.ceil(open_units / search.trainings()))
    return max(open_units * durations.seconds_per_unit - done, 0.0) / max(concurrency, 1.0)


def _seconds_done(job: Job, durations: TrialDurations, running: Running) -> float:
    """Return the seconds of work that running trials have done on units that are not complete.

    If epochs are counted, these are the epochs that are not in their rows yet. Otherwise the larger of two
    estimates per trial is used: by its elapsed time (limited, because it may take longer) and by its epochs.
    """
    if _counts_epochs(job):
        return durations.seconds_per_unit * sum(each.epochs - each.stored_epochs for each in running.values())
    fractions: dict[int, float] = defaultdict(float)
    for (trial, _), each in running.items():
        fractions[trial] += each.fraction
    over = Count("executions", filter=Q(executions__state__in=(TrialState.COMPLETED, TrialState.PRUNED)))
    completed = dict(job.trials.running().annotate(over=over).values_list("pk", "over"))
    executions, units = outcomes.search_of(job).trainings(), 0.0
    for trial, since in running_executions.current_starts(job).items():
        open_ = executions - completed.get(trial, 0)
        passed = (clock.estimate() - since).total_seconds() / max(durations.seconds_per_unit, 1e-6)
        units += max(min(passed - (executions - open_), open_ * MAX_RUNNING_FRACTION), fractions[trial], 0.0)
    return units * durations.seconds_per_unit


def _retrain_seconds_left(
    job: Job, spec: ExperimentSpec, durations: TrialDurations | None, concurrency: int
) -> float:
    if spec.search is None or spec.after.retrain is None or durations is None:
        return 0.0
    retrain = spec.after.retrain
    best = durations.best_epoch * RETRAIN_EPOCHS_FACTOR
    epochs = min(best + retrain.patience, retrain.epochs_cap) + best * retrain.epochs_factor
    each = epochs * durations.seconds_per_epoch
    trained = [child for child in job.children.all() if child.facts.trains]
    finished = sum(child.state in FINAL for child in trained)
    spent = sum(
        min((clock.estimate() - child.started).total_seconds(), each * MAX_RUNNING_FRACTION)
        for child in trained
        if child.state == JobState.RUNNING and child.started
    )
    return max((retrain.top - finished) * each - spent, 0.0) / min(concurrency, retrain.top)


def _steps_seconds_left(job: Job, spec: ExperimentSpec, concurrency: int) -> float:
    ended = Counter(child.kind for child in job.children.all() if child.state in FINAL)
    seconds = 0.0
    for kind in PIPELINE:
        starts = KINDS[kind].usual_starts
        if starts is not None and (left := KINDS[kind].planned(spec) - ended[kind]):
            seconds += left * _usual_seconds(kind, starts, job) / min(concurrency, max(left, 1))
    return seconds


def _usual_seconds(kind: str, starts: float, root: Job) -> float:
    """Return the median duration of the latest completed jobs of a kind, or of `starts` runner starts."""
    latest = Job.objects.filter(
        kind=kind, state=JobState.COMPLETED, started__isnull=False, finished__isnull=False
    ).order_by("-finished")[:9]
    durations = [_seconds(job.started, job.finished) for job in latest]
    return median(durations) if durations else starts * _start_seconds(root)


def _start_seconds(root: Job) -> float:
    """Return the duration of the first runner's start; the default if that runner was warm."""
    first = root.attempts.filter(claimed__isnull=False).order_by("number").first()
    measured = _seconds(first.claimed, root.started) if first is not None else 0.0
    return measured if measured >= 1.0 else USUAL_START_SECONDS


def _seconds(since: dt.datetime | None, until: dt.datetime | None) -> float:
    return (until - since).total_seconds() if since is not None and until is not None else 0.0
