"""Estimates how long a search's remaining trials take, from those that have ended or are running."""

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from django.db.models import Avg, F, Max, Q
from django.db.models.functions import Coalesce

from jobs import clock
from jobs.messages.events import PROGRESS_AXES
from jobs.models import Execution, Job, MetricSeries, Trial
from jobs.queries.search import outcomes, running_executions
from jobs.states import TrialState

LATEST = 3
"""Durations are measured on the later half of the trials, but on at least this many."""

MAX_TRIALS = 200
"""How many of the latest trials are read; more do not improve the estimate."""


class TrialDurations(NamedTuple):
    """The trials' durations so far. A unit is an execution, or an epoch if the search has rungs.

    Attributes:
        seconds_per_unit: a unit's mean duration.
        seconds_per_epoch: an epoch's mean duration.
        best_epoch: the best epoch's mean number.
        concurrency: mean number of trials that ran at the same time; infinite while it is unknown.
    """

    seconds_per_unit: float
    seconds_per_epoch: float
    best_epoch: float
    concurrency: float


def measure_durations(search: Job) -> TrialDurations | None:
    """Measure a search's trials; None while nothing is known."""
    return _ended_durations(search) or _running_durations(search)


def _ended_durations(job: Job) -> TrialDurations | None:
    """Return the latest scored trials' mean durations. None without any."""
    ended = job.trials.filter(state__in=outcomes.SCORED_STATES, started__isnull=False, finished__isnull=False)
    # The duration of a continued trial was chosen by a user, so it does not apply to the others.
    timed = ended.filter(until=None).order_by("-finished")
    recent = list(ended.order_by("-finished").values_list("pk", flat=True)[:MAX_TRIALS])
    measured = Execution.objects.filter(trial__in=recent, state__in=outcomes.SCORED_STATES, epochs__gt=0)
    trained = measured.aggregate(epochs=Avg("epochs"), best=Avg(Coalesce("best_epoch", 1)))
    # The first trial of each runner includes its start, and the first of each shape its compilation, so the
    # later half is a better estimate of the remaining trials.
    count = max(LATEST, timed[: 2 * MAX_TRIALS].count() // 2)
    latest = list(timed.only("started", "finished", "bracket", "rung", "epochs")[:count])
    if not latest or trained["epochs"] is None:
        return None
    seconds = sum(seconds_between(trial.started, trial.finished) for trial in latest)
    concurrency = _mean_concurrency(job, latest)
    per_trial = seconds / len(latest) / outcomes.search_of(job).trainings()
    if rungs := _epochs_of_rungs(job):
        # A trial's row has the start and end of its newest rung only.
        per_epoch = per_trial / fmean(_epochs_in_rung(trial, rungs) for trial in latest)
        return TrialDurations(per_epoch, per_epoch, trained["best"], concurrency)
    return TrialDurations(per_trial, per_trial / trained["epochs"], trained["best"], concurrency)


def _running_durations(job: Job) -> TrialDurations | None:
    """Estimate durations from running trials, while no trial has ended.

    None if a pruner or early stopping may end them at an unknown epoch.
    """
    search = outcomes.search_of(job)
    if job.revision is None or search.pruner is not None or job.revision.spec.fit.early_stopping is not None:
        return None
    started = running_executions.current_starts(job)
    epochs = _reported_epochs(started)
    if not epochs:
        return None
    seconds = sum(seconds_between(started[trial], clock.estimate()) for trial in epochs)
    # On average, half of the current epoch is done as well.
    trained = sum(count + 0.5 for count in epochs.values())
    whole, per_epoch = job.revision.spec.fit.epochs, seconds / trained
    per_unit = per_epoch if search.info.has_rungs else per_epoch * whole
    return TrialDurations(per_unit, per_epoch, whole, len(epochs))


def _reported_epochs(trials: Iterable[int]) -> dict[int, int]:
    """Sum the epochs that each trial's newest attempt has reported."""
    attempts = MetricSeries.objects.filter(trial__in=trials, attempt=F("trial__attempt"))
    reported = attempts.filter(x__in=PROGRESS_AXES)
    executions = reported.values_list("trial_id", "execution").annotate(epochs=Max("count"))
    total_epochs: dict[int, int] = defaultdict(int)
    for trial, _, epochs in executions:
        total_epochs[trial] += epochs
    return total_epochs


def _mean_concurrency(job: Job, latest: Sequence[Trial]) -> float:
    """Return how many trials ran on average since the first of the latest started, while any ran.

    The number of slots is not enough: other jobs hold some, and one is empty while a trial is suggested.
    """
    if len(latest) < LATEST:
        return job.trials.running().count() or math.inf
    starts = [trial.started for trial in latest if trial.started is not None]
    now, since = clock.estimate(), min(starts)
    overlapping = job.trials.filter(
        Q(state=TrialState.RUNNING) | Q(finished__gt=since), started__isnull=False
    )
    busy, covered, reached = 0.0, 0.0, since
    for trial in overlapping.only("state", "started", "finished").order_by("started"):
        end = trial.finished if trial.state != TrialState.RUNNING and trial.finished else now
        begin = max(trial.started or since, since)
        busy += max(seconds_between(begin, end), 0.0)
        covered += max(seconds_between(max(begin, reached), end), 0.0)
        reached = max(reached, end)
    return busy / covered if covered else math.inf


def _epochs_in_rung(trial: Trial, rungs: list[list[int]]) -> int:
    """Count the epochs in a trial's newest rung."""
    # A trial queued by hand or in a bracket that a revision removed has no rung: it trains all epochs.
    if trial.epochs is None or trial.bracket >= len(rungs) or trial.rung >= len(rungs[trial.bracket]):
        return sum(rungs[0])
    return rungs[trial.bracket][trial.rung]


def _epochs_of_rungs(job: Job) -> list[list[int]]:
    """Return the epochs in each bracket's rungs. Empty for a search without rungs."""
    search = outcomes.search_of(job)
    if job.revision is None or not search.info.has_rungs:
        return []
    brackets = search.brackets(job.revision.spec.fit.epochs)
    return [[b - a for a, b in pairwise((0, *bracket.epochs))] for bracket in brackets]


def seconds_between(since: dt.datetime | None, until: dt.datetime | None) -> float:
    """Return the seconds from `since` to `until`; 0 if either is unknown."""
    return (until - since).total_seconds() if since is not None and until is not None else 0.0
