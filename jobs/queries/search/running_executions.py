"""Reads running executions' epochs from their metric series. Their rows are updated only at the end."""

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import F, Max

from jobs.messages.events import PROGRESS_AXES
from jobs.models import Execution, Job, MetricSeries, Trial
from jobs.states import TrialState

type Key = tuple[int, int]
"""A trial's id, and its execution's number."""

INTERRUPTED = (TrialState.PAUSED, TrialState.QUEUED, TrialState.STOPPED)
"""The states in which an execution may resume from its checkpoint."""


class RunningExecution(NamedTuple):
    """A running execution's progress.

    Attributes:
        trial: its trial's number.
        epochs: how many epochs are completed.
        stored_epochs: how many its row has: trained by earlier attempts, at earlier rungs.
        last_epoch: the last epoch that it can reach; None if only the external script knows.
    """

    trial: int
    epochs: int
    stored_epochs: int
    last_epoch: int | None

    @property
    def fraction(self) -> float:
        """Return the completed fraction; 0 while it is unknown."""
        return min(self.epochs / self.last_epoch, 1.0) if self.last_epoch else 0.0


def running_in_search(search: Job) -> dict[Key, RunningExecution]:
    """Return a search's running executions, with two queries for any number of trials."""
    return running_in_trials(search, search.trials.running().values_list("pk", flat=True))


def running_in_trials(search: Job, trials: Iterable[int]) -> dict[Key, RunningExecution]:
    """Return the running executions in these trials of a search."""
    running = Execution.objects.running().filter(trial__in=trials)
    rows = running.filter(trial__state=TrialState.RUNNING).select_related("trial").defer("metrics", "best")
    executions = list(rows)
    if not executions:
        return {}
    # The last epochs that the newest attempts have reported.
    series = MetricSeries.objects.filter(
        trial__in={row.trial_id for row in executions}, attempt=F("trial__attempt"), x__in=PROGRESS_AXES
    )
    newest = series.values_list("trial_id", "execution").annotate(epoch=Max("last_x"))
    reported = {(trial, execution): int(epoch or 0) for trial, execution, epoch in newest}
    return {
        (row.trial_id, row.number): RunningExecution(
            trial=row.trial.number,
            epochs=max(row.epochs, reported.get((row.trial_id, row.number), 0)),
            stored_epochs=row.epochs,
            last_epoch=_last_epoch(row.trial, search),
        )
        for row in executions
    }


def interrupted_fraction(search: Job) -> float:
    """Sum the completed fractions over interrupted executions: paused, stopped or queued again."""
    begun = Execution.objects.filter(trial__job=search, state__in=INTERRUPTED, epochs__gt=0)
    rows = begun.select_related("trial")
    last = [(row.epochs, _last_epoch(row.trial, search)) for row in rows.defer("metrics", "best")]
    return sum(min(epochs / of, 1.0) for epochs, of in last if of)


def current_starts(search: Job) -> dict[int, dt.datetime]:
    """Return when each running trial started or its current attempt was claimed, whichever is later.

    A trial's row has only its first start, which may be long before a pause.
    """
    claimed = dict(search.attempts.filter(claimed__isnull=False).values_list("number", "claimed"))
    running = search.trials.running().filter(started__isnull=False)
    rows = running.values_list("pk", "started", "attempt")
    return {pk: max(filter(None, (started, claimed.get(attempt)))) for pk, started, attempt in rows}


def _last_epoch(trial: Trial, search: Job) -> int | None:
    """Return a trial's last epoch: from its continuation, rung, values or the spec."""
    if trial.until is not None or trial.epochs is not None:
        return trial.until or trial.epochs
    if search.revision is None:
        return None
    spec = search.revision.spec
    prefix = spec.model.info.fit_prefix
    epochs = None if prefix is None else trial.values.get(f"{prefix}epochs")
    return epochs if isinstance(epochs, int) else spec.fit.epochs
