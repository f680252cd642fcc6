"""Reads the metrics of evaluations."""

from typing import Any


def metric_value(metric: Any) -> Any:
    """Return a stored metric's value: a number, or an object with a value and a confidence interval."""
    return metric.get("value") if isinstance(metric, dict) else metric
