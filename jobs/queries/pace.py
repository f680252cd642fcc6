"""How fast a search's trials are, as far as those that have ended or run tell of the rest."""

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
from jobs.models import Execution, Job, MetricSeries, Trial
from jobs.queries import outcomes, running_executions
from jobs.states import TrialState

LATEST = 3
"""From this many trials on the later half sets the pace."""
MOST_LOOKED_AT = 200
"""Of thousands of trials the latest hundreds tell as much as the later half."""


class Pace(NamedTuple):
    """What the trials so far tell of the rest. A unit is an execution, or an epoch where there are rungs.

    `at_once` is how many trials ran beside each other, infinite while too little is known to say so.
    """

    seconds_per_unit: float
    seconds_per_epoch: float
    best_epoch: float
    at_once: float


def of(search: Job) -> Pace | None:
    """Return the pace of a search's trials, None while nothing is known."""
    return _measured(search) or _of_the_first(search)


def _measured(job: Job) -> Pace | None:
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
        return Pace(per_epoch, per_epoch, trained["best"], at_once)
    return Pace(per_trial, per_trial / trained["epochs"], trained["best"], at_once)


def _of_the_first(job: Job) -> Pace | None:
    """Return the pace of the trainings that run while no trial has ended, each in its present attempt.

    None where something may end them early, which is nobody's to know.
    """
    search = outcomes.search_of(job)
    if job.revision is None or search.pruner is not None or job.revision.spec.fit.early_stopping is not None:
        return None
    begun = running_executions.begun(job)
    epochs = _told_epochs(begun)
    if not epochs:
        return None
    seconds = sum(_seconds(begun[trial], clock.estimate()) for trial in epochs)
    trained = sum(told + 0.5 for told in epochs.values())  # and about half of the one at hand
    whole, per_epoch = job.revision.spec.fit.epochs, seconds / trained
    per_unit = per_epoch if search.info.has_rungs else per_epoch * whole
    return Pace(per_unit, per_epoch, whole, len(epochs))


def _told_epochs(trials: Iterable[int]) -> dict[int, int]:
    """Return how many epochs the newest attempt told of each trial, over all its executions."""
    told = MetricSeries.objects.filter(trial__in=trials, attempt=F("trial__attempt"), x="epoch")
    executions = told.order_by().values_list("trial_id", "execution").annotate(epochs=Max("count"))
    found: dict[int, int] = defaultdict(int)
    for trial, _, epochs in executions:
        found[trial] += epochs
    return found


def _at_once(job: Job, latest: Sequence[Trial]) -> float:
    """Return how many trials ran at once on average since the first of the latest began, while any ran.

    Slots are not enough to know it: other jobs hold some, and one stays empty while a trial is asked for.
    """
    if len(latest) < LATEST:
        return job.trials.running().count() or math.inf
    began = [trial.started for trial in latest if trial.started is not None]
    now, since = clock.estimate(), min(began)
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
    if job.revision is None or not search.info.has_rungs:
        return []
    brackets = search.brackets(job.revision.spec.fit.epochs)
    return [[b - a for a, b in pairwise((0, *bracket.epochs))] for bracket in brackets]


def _seconds(since: dt.datetime | None, until: dt.datetime | None) -> float:
    return (until - since).total_seconds() if since is not None and until is not None else 0.0
