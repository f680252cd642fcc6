"""Computes a job's progress and estimates its remaining time from measured durations.

The fraction counts completed units, and executions that have begun by their completed part. In a root job, it
also counts the later steps, each as much as one trial. A root job's remaining time is the time for its
remaining executions (epochs if the search has rungs, whose lengths differ), with the latest ones' duration
and concurrency, and for its later steps.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from django.db.models import Count, Q, Sum

from jobs import clock
from jobs.messages.events import PhaseName
from jobs.models import Execution, Job
from jobs.queries.runs import later_steps, steps
from jobs.queries.runs.devices import live_workers
from jobs.queries.search import outcomes, running_executions, search_time, trial_durations
from jobs.queries.search.trial_durations import TrialDurations
from jobs.states import FINAL, JobState, TrialState

MAX_RUNNING_FRACTION = 0.9
"""While an execution runs, at most this fraction of its expected time counts as done."""

type Running = Mapping[running_executions.Key, running_executions.RunningExecution]


class Progress(NamedTuple):
    """`done` of `total` units.

    `fraction` includes running executions and later steps. `eta_seconds` is None if it is unknown. `phase` is
    a running task's activity while its progress is not known, such as compiling. `max_minutes` is the limit
    if time alone ends the search: `total` is then only a bound.
    """

    done: float
    total: float
    unit: str
    fraction: float
    eta_seconds: float | None
    phase: PhaseName | None = None
    max_minutes: float | None = None


def progress_of_job(job: Job) -> Progress:
    """Return a job's progress, whatever its kind."""
    if job.state == JobState.COMPLETED:
        total, unit = (
            _count_units(job)[1:] if _counts_epochs(job) or job.payload.finishing else _planned_units(job)
        )
        return Progress(total, total, unit, 1.0, 0.0)
    done, total, unit = _count_units(job)
    is_open = job.state not in FINAL and job.started is not None
    running = running_executions.running_in_search(job) if job.facts.has_trials and is_open else {}
    eta = _seconds_left(job, total - done, running) if is_open and job.state != JobState.PAUSED else None
    begun = done
    if _counts_epochs(job):
        begun = done = min(
            done + sum(execution.epochs - execution.stored_epochs for execution in running.values()), total
        )
    elif job.facts.has_trials and job.started is not None:
        begun += running_executions.interrupted_fraction(job)
        begun += sum(execution.fraction for execution in running.values())
    task_fraction = min(begun / total, 1.0) if total else 0.0
    if is_open and job.facts.has_trials:
        task_fraction = max(task_fraction, search_time.elapsed_fraction(job, clock.estimate()))
    fraction = later_steps.completed_fraction(job, task_fraction)
    # Only a completed job is shown as 100 %: its last units may be done before its state changes.
    phase = job.progress.get("phase") if job.state == JobState.RUNNING else None
    limit = outcomes.search_of(job).time_limit if job.facts.has_trials and not job.payload.finishing else None
    return Progress(done, total, unit, min(fraction, 0.99), eta, phase, limit)


def _count_units(job: Job) -> tuple[float, float, str]:
    """Count the completed units and all units, and name the unit."""
    total, unit = _planned_units(job)
    if not job.facts.has_trials:
        return job.progress.get("done", 0), total, unit
    executions = Execution.objects.filter(trial__job=job)
    if _counts_epochs(job):
        done = executions.aggregate(done=Sum("epochs"))["done"] or 0
        # Trials that a user continues train more epochs than the search has planned.
        return done, done if job.payload.finishing else max(total, done), unit
    done = executions.filter(state__in=(TrialState.COMPLETED, TrialState.PRUNED)).count()
    return done, done if job.payload.finishing else total, unit


def _planned_units(job: Job) -> tuple[float, str]:
    """Count the units and name the unit; for a search, without a query for its executions."""
    if not job.facts.has_trials:
        return job.progress.get("total", 0), job.progress.get("unit", "")
    search = outcomes.search_of(job)
    extra = job.trials.filter(source__in=("hand", "start")).count()
    if job.revision is not None and _counts_epochs(job):
        whole = job.revision.spec.fit.epochs
        return (search.epochs_planned(whole) + extra * whole) * search.trainings(), "epochs"
    return (outcomes.trials_planned(job) + extra) * search.trainings(), "executions"


def _counts_epochs(job: Job) -> bool:
    """Return whether the unit is an epoch. Trials that end at rungs differ in length."""
    return job.facts.has_trials and job.revision is not None and outcomes.search_of(job).info.has_rungs


def _seconds_left(job: Job, open_units: float, running: Running) -> float | None:
    """Estimate the remaining seconds for a job and its later steps. None if unknown."""
    if job.revision is None or job.parent_id is not None:
        return _own_seconds_left(job)
    # How many attempts the pool's slots can run at the same time.
    concurrency = max(sum(worker.slots // job.slots for worker in live_workers(job)), 1)
    spec, search = steps.effective_spec(job), _measured_search(job)
    durations = trial_durations.measure_durations(search) if search is not None else None
    if search is job:
        seconds = _search_seconds_left(job, durations, open_units, running, concurrency)
        limit = search_time.seconds_left(job, clock.estimate())
        seconds = seconds if limit is None or seconds is None else min(seconds, limit)
    else:
        seconds = _own_seconds_left(job)
    if seconds is None:
        return None
    later = later_steps.later_seconds_left(job, spec, durations, concurrency)
    return None if later is None else seconds + later


def _measured_search(job: Job) -> Job | None:
    """Return the search whose trials measure how long a training takes."""
    if (selection := job.payload.chosen_trials()) is not None:
        return Job.objects.select_related("revision").filter(pk=selection.search).first()
    return job if job.facts.has_trials else None


def _own_seconds_left(job: Job) -> float | None:
    """Estimate the remaining seconds in a job's own task from its mean speed."""
    return 0.0 if job.payload.task_done else later_steps.task_seconds_left(job)


def _search_seconds_left(
    job: Job, durations: TrialDurations | None, open_units: float, running: Running, max_concurrency: int
) -> float | None:
    if durations is None:
        return None
    done = _seconds_done(job, durations, running)
    search = outcomes.search_of(job)
    concurrency = min(max_concurrency, search.parallel_trials or max_concurrency, durations.concurrency)
    # The executions of a trial run one after another, so the last trials leave slots empty.
    if not _counts_epochs(job):
        concurrency = min(concurrency, math.ceil(open_units / search.trainings()))
    return max(open_units * durations.seconds_per_unit - done, 0.0) / max(concurrency, 1.0)


def _seconds_done(job: Job, durations: TrialDurations, running: Running) -> float:
    """Return the seconds that running trials have spent on incomplete units.

    If epochs are counted, these are the epochs that are not in their rows yet. Otherwise each trial has two
    estimates, and the larger is used: by its elapsed time (limited, because it may take longer) and by its
    epochs.
    """
    if _counts_epochs(job):
        return durations.seconds_per_unit * sum(
            execution.epochs - execution.stored_epochs for execution in running.values()
        )
    fractions: dict[int, float] = defaultdict(float)
    for (trial, _), execution in running.items():
        fractions[trial] += execution.fraction
    ended = Count("executions", filter=Q(executions__state__in=(TrialState.COMPLETED, TrialState.PRUNED)))
    completed = dict(job.trials.running().annotate(ended=ended).values_list("pk", "ended"))
    executions, units = outcomes.search_of(job).trainings(), 0.0
    for trial, since in running_executions.current_starts(job).items():
        done = completed.get(trial, 0)
        elapsed = (clock.estimate() - since).total_seconds() / max(durations.seconds_per_unit, 1e-6)
        limit = (executions - done) * MAX_RUNNING_FRACTION
        units += max(min(elapsed - done, limit), fractions[trial], 0.0)
    return units * durations.seconds_per_unit
