"""Reads candidates' test and validation metrics."""

import math
from collections.abc import Sequence
from typing import Any

from jobs.models import Job
from jobs.spec.sections import measures


def summarize_candidate(job: Job) -> dict[str, Any] | None:
    """Return a candidate's label and its test and validation metrics; None without test metrics."""
    results = job.results
    if not results.metrics.get("test"):
        return None
    return {
        "job": job,
        "label": job.label,
        "test": {name: metric_value(m) for name, m in results.metrics["test"].items()},
        "validation": {name: metric_value(m) for name, m in results.metrics.get("validation", {}).items()},
        "rows": results.test_rows,
    }


def deciding_metric(summaries: Sequence[dict[str, Any]], objective: str) -> str:
    """Return the test metric that corresponds to the metric of an objective; empty if none was measured."""
    name = objective.removeprefix("val_")
    names = ("log_loss", "rmse") if name == "loss" else (measures.EVALUATED_AS.get(name, name),)
    return next((name for name in names if any(name in each["test"] for each in summaries)), "")


def best_first(summaries: Sequence[dict[str, Any]], metric: str) -> list[dict[str, Any]]:
    """Return summaries of candidates, the best by a test metric first; those without a value are the last."""
    direction = measures.known_direction(metric) or measures.direction(metric)
    sign = 1 if direction == "min" else -1

    def place(summary: dict[str, Any]) -> float:
        value = summary["test"].get(metric)
        return math.inf if value is None or not math.isfinite(value) else sign * value

    return sorted(summaries, key=place)


def metric_value(metric: Any) -> Any:
    """Return a stored metric's value: a number, or an object with a value and a confidence interval."""
    return metric.get("value") if isinstance(metric, dict) else metric
