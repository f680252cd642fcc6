"""A trial beside the best one: what its executions measured, and who ran it."""

from statistics import fmean

from django.db.models import QuerySet

from jobs.models import Attempt, Execution, Trial

Compared = list[tuple[str, float | None, float | None]]


def metrics(trial: Trial, best: Trial | None) -> Compared:
    """Return each metric's mean over a trial's executions, and over the best trial's."""
    mine = _means(trial)
    theirs = _means(best) if best is not None else {}
    return [(name, mine.get(name), theirs.get(name)) for name in sorted({*mine, *theirs})]


def _means(trial: Trial) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for measured in Execution.objects.filter(trial=trial).values_list("metrics", flat=True):
        for name, value in measured.items():
            if isinstance(value, int | float):
                found.setdefault(name, []).append(value)
    return {name: fmean(values) for name, values in found.items()}


def attempts(trial: Trial) -> QuerySet[Attempt]:
    """Return the attempts at a trial, newest first."""
    return trial.attempts.select_related("worker").order_by("-number")
