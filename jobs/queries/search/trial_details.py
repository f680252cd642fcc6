"""Reads a trial's metrics beside the best trial's, its attempts and its checkpoints."""

from statistics import fmean

from django.db.models import QuerySet

from jobs.models import Attempt, Checkpoint, Execution, Trial

MetricComparison = list[tuple[str, float | None, float | None]]
"""Name, mean over the trial's executions, mean over the best trial's."""

MAX_CHECKPOINTS = 50
"""Only this many are read: each execution keeps several, and a trial may have many executions."""


def metric_comparisons(trial: Trial, best: Trial | None) -> MetricComparison:
    """Return each metric with its mean over the trial's executions and over the best trial's."""
    means = _mean_metrics(trial)
    best_means = _mean_metrics(best) if best is not None else {}
    return [(name, means.get(name), best_means.get(name)) for name in sorted({*means, *best_means})]


def _mean_metrics(trial: Trial) -> dict[str, float]:
    values_by_name: dict[str, list[float]] = {}
    for metrics in Execution.objects.filter(trial=trial).values_list("metrics", flat=True):
        for name, value in metrics.items():
            if isinstance(value, int | float):
                values_by_name.setdefault(name, []).append(value)
    return {name: fmean(values) for name, values in values_by_name.items()}


def trial_attempts(trial: Trial) -> QuerySet[Attempt]:
    """Return a trial's attempts, newest first."""
    return trial.attempts.select_related("worker").order_by("-number")


def trial_checkpoints(trial: Trial) -> list[Checkpoint]:
    """Return a trial's newest kept checkpoints, by execution."""
    newest = trial.checkpoints.kept().order_by("-pk")[:MAX_CHECKPOINTS]
    return sorted(newest, key=lambda row: (row.execution or 0, -row.step))
