"""Reads candidates' test and validation metrics."""

from typing import Any

from jobs.models import Job


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


def metric_value(metric: Any) -> Any:
    """Return a stored metric's value: a number, or an object with a value and a confidence interval."""
    return metric.get("value") if isinstance(metric, dict) else metric
