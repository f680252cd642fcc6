"""Reads how far earlier attempts have trained the models that an attempt trains."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db.models import Max, Q

from jobs.messages.task import EarlierTraining
from jobs.models import Attempt, Checkpoint, MetricSeries

type Training = tuple[int | None, int]
"""The key of a trial, or None, and the number of an execution, or 0."""


@dataclass(frozen=True)
class EarlierTrainings:
    """The last epochs that earlier attempts completed, by training.

    Attributes:
        workers: the names of the workers that earlier attempts had, by the attempt's number.
        recorded: by the checkpoints that were ever recorded.
        measured: by the metrics.
        removed: the trainings of which all checkpoints were removed.
    """

    workers: Mapping[int, str] = field(default_factory=dict)
    recorded: Mapping[Training, int] = field(default_factory=dict)
    measured: Mapping[Training, int] = field(default_factory=dict)
    removed: frozenset[Training] = frozenset()

    def of_training(self, trial: int | None = None, execution: int = 0) -> EarlierTraining | None:
        """Return how far a training was, or None if it had completed no epoch."""
        training = (trial, execution)
        if epoch := self.recorded.get(training, 0):
            removed = training in self.removed
            reason = "its checkpoints were removed, since nothing was to resume from them" if removed else ""
            return EarlierTraining(epoch=epoch, reason=reason)
        if epoch := self.measured.get(training, 0):
            reason = "it had written no checkpoint yet"
            return EarlierTraining(epoch=epoch, had_checkpoint=False, reason=reason)
        return None


def earlier_trainings(attempt: Attempt) -> EarlierTrainings:
    """Return how far the trainings of an attempt were before it."""
    earlier = Attempt.objects.filter(job=attempt.job_id, number__lt=attempt.number)
    if attempt.job.facts.has_trials:
        earlier = earlier.filter(trials__in=attempt.trials.all())
    # Most attempts are the first, and the rest costs two large queries.
    workers = dict(earlier.values_list("number", "worker__name"))
    if not workers:
        return EarlierTrainings()
    ours = Q(job=attempt.job_id, attempt__in=workers)
    checkpoints = (
        Checkpoint.objects.filter(ours)
        .order_by()
        .values("trial", "execution")
        .annotate(last=Max("epoch"), kept=Max("pk", filter=Q(removed=None)))
    )
    recorded: dict[Training, int] = {}
    removed: set[Training] = set()
    for row in checkpoints:
        training = (row["trial"], row["execution"] or 0)
        recorded[training] = row["last"]
        if row["kept"] is None:
            removed.add(training)
    series = MetricSeries.objects.filter(ours, x="epoch", last_x__isnull=False).order_by()
    measured: dict[Training, int] = {
        (row["trial"], row["execution"]): int(row["last"])
        for row in series.values("trial", "execution").annotate(last=Max("last_x"))
    }
    return EarlierTrainings(workers, recorded, measured, frozenset(removed))
