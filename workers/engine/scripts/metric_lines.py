"""Finds the metrics in the lines that a script prints: `{"step": 1, "metrics": {"val_accuracy": 0.9}}`.

`{"epoch": 1, "val_accuracy": 0.9}` means the same: numbers alone, of which one counts the steps.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jobs.spec.sections.measures import LONGEST_NAME

MAX_NAMES = 200
"""Different metrics of one run."""
MAX_POINTS = 200_000
"""Values of all metrics of one run."""
COUNTERS = ("step", "epoch")
"""The names that count steps in a line of numbers alone; the first that it has does."""
MAX_STEP = 2**31 - 1
"""The largest step that the database can store as an epoch."""
MAX_LINE_BYTES = 64 * 2**10
"""A longer line is no line of metrics."""


class MetricLine(NamedTuple):
    """A step's metrics. A value may be NaN or infinite."""

    step: int
    metrics: dict[str, float]


class NotUnderstood(Exception):
    """A line that has metrics, but not in the form that is expected."""


class MetricLines:
    """Reads one run's lines. A line without a step has the one after the last."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._points = 0
        self._last = 0

    def read(self, line: bytes) -> MetricLine | None:
        """Return the metrics in a line; None if it is an ordinary line.

        Raises:
            NotUnderstood: it has metrics that cannot be used; the message has the reason.
        """
        body = _object_in(line)
        if body is not None and "metrics" not in body:
            body = _nested(body)
        if body is None:
            return None
        step, metrics = self._step(body), dict(_values(body["metrics"]))
        if len(self._names | metrics.keys()) > MAX_NAMES:
            raise NotUnderstood(f"more than {MAX_NAMES} different metrics; further ones are left out")
        if self._points + len(metrics) > MAX_POINTS:
            raise NotUnderstood(f"more than {MAX_POINTS:,} values; further ones are left out")
        self._names |= metrics.keys()
        self._points += len(metrics)
        self._last = step
        return MetricLine(step, metrics)

    def _step(self, body: Mapping[str, Any]) -> int:
        step = body.get("step", self._last + 1)
        if isinstance(step, float) and step.is_integer():
            step = int(step)
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= MAX_STEP:
            raise NotUnderstood(f"step must be a whole number from 0, not {str(step)[:50]!r}")
        return step


def _object_in(line: bytes) -> dict[str, Any] | None:
    line = line.strip()
    # Most lines are ordinary: only these are parsed.
    if not line.startswith(b"{") or not line.endswith(b"}") or len(line) > MAX_LINE_BYTES:
        return None
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _nested(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the nested form of an object with a step or an epoch beside numbers; None for any other."""
    metrics = {name: value for name, value in body.items() if name not in COUNTERS}
    is_plain = all(
        isinstance(value, int | float | None) and not isinstance(value, bool) for value in body.values()
    )
    if not metrics or len(metrics) == len(body) or not is_plain:
        return None
    return {"step": next(body[name] for name in COUNTERS if name in body), "metrics": metrics}


def _values(metrics: object) -> Iterator[tuple[str, float]]:
    if not isinstance(metrics, dict) or not metrics:
        raise NotUnderstood("metrics must be an object with a number for each name")
    for name, value in metrics.items():
        if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            raise NotUnderstood(
                f"a metric has a name that is empty, too long or not printable: {name[:50]!r}"
            )
        # A text such as "nan" is no number: a chart could not show why.
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise NotUnderstood(f"metric {name[:50]!r} is no number: {str(value)[:50]!r}")
        yield name, _number(value)


def _number(value: float | None) -> float:
    try:
        return float("nan") if value is None else float(value)
    except OverflowError:  # an integer of hundreds of digits
        return float("inf")
