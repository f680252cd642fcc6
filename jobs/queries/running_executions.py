"""How far the trainings are that run now: read from their curves, since their rows say so only at the end."""

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import F, Max

from jobs.models import Execution, Job, MetricSeries, Trial
from jobs.states import TrialState

type Key = tuple[int, int]
"""The key of a trial, and the number of its execution."""


class UnderWay(NamedTuple):
    """One running training: the epochs it has ended, those at its start, and where it ends at the latest.

    Attributes:
        trial: its trial's number.
        epochs: those it has ended, of which `before` were trained by earlier attempts at earlier rungs.
        of: the last epoch that it may come to; None where only the script that trains it knows.
    """

    trial: int
    epochs: int
    before: int
    of: int | None

    @property
    def share(self) -> float:
        """Return how much of it is done; 0 while that is unknown."""
        return min(self.epochs / self.of, 1.0) if self.of else 0.0


def of_search(search: Job) -> dict[Key, UnderWay]:
    """Return what runs of a search: two queries, whatever the number of its trials."""
    return read(search, search.trials.running().values_list("pk", flat=True))


def read(search: Job, trials: Iterable[int]) -> dict[Key, UnderWay]:
    """Return what runs of these trials of a search, by their keys."""
    running = Execution.objects.running().filter(trial__in=trials)
    rows = running.filter(trial__state=TrialState.RUNNING).select_related("trial").defer("metrics", "best")
    found = list(rows)
    if not found:
        return {}
    reached = _reached({row.trial_id for row in found})
    return {
        (row.trial_id, row.number): UnderWay(
            trial=row.trial.number,
            epochs=max(row.epochs, reached.get((row.trial_id, row.number), 0)),
            before=row.epochs,
            of=_ends(row.trial, search),
        )
        for row in found
    }


def begun(search: Job) -> dict[int, dt.datetime]:
    """Return, by key, when the present attempt turned to each running trial, or was claimed if that is later.

    A trial's row says when it began for the first time, which may have been days and a pause ago.
    """
    claimed = dict(search.attempts.filter(claimed__isnull=False).values_list("number", "claimed"))
    running = search.trials.running().filter(started__isnull=False)
    rows = running.values_list("pk", "started", "attempt")
    return {pk: max(filter(None, (started, claimed.get(attempt)))) for pk, started, attempt in rows}


def _reached(trials: set[int]) -> dict[Key, int]:
    """Return the last epoch that the newest attempt told of each execution."""
    told = MetricSeries.objects.filter(trial__in=trials, attempt=F("trial__attempt"), x="epoch")
    newest = told.order_by().values_list("trial_id", "execution").annotate(epoch=Max("last_x"))
    return {(trial, execution): int(epoch or 0) for trial, execution, epoch in newest}


def _ends(trial: Trial, search: Job) -> int | None:
    if trial.until is not None or trial.epochs is not None:
        return trial.until or trial.epochs
    if search.revision is None:
        return None
    chosen = trial.values.get("epochs")
    return chosen if isinstance(chosen, int) else search.revision.spec.fit.epochs
