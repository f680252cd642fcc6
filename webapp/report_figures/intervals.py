"""Names the methods behind confidence intervals for people, and explains them."""

from collections.abc import Iterable
from typing import NamedTuple

from jobs.messages.reports.base import MetricValue


class IntervalMethod(NamedTuple):
    """A method's name, and a sentence that explains it."""

    name: str
    meaning: str


METHODS = {
    "wilson": IntervalMethod(
        "Wilson interval",
        "computed from the share and the number of rows alone; it stays between 0 and 1, also near its ends.",
    ),
    "bootstrap": IntervalMethod(
        "Bootstrap",
        "rows are drawn at random, each any number of times, and the metric is computed again, up to 1,000 "
        "times; the interval holds the middle 95 % of the results.",
    ),
}
"""The methods by their names in reports."""


def method_of(value: MetricValue) -> IntervalMethod | None:
    """Return how a metric's interval was computed; None if it has no interval."""
    return METHODS[value.interval] if value.interval is not None and value.low is not None else None


def methods_of(values: Iterable[MetricValue]) -> list[IntervalMethod]:
    """Return the methods behind several metrics' intervals, each once."""
    methods = (method_of(value) for value in values)
    return list(dict.fromkeys(method for method in methods if method is not None))
