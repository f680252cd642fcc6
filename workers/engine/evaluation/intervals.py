"""Computes confidence intervals for metrics that are measured on finitely many rows."""

import math
from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt

from jobs.messages.reports.base import MetricValue

RowIndices = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]
Z95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

MAX_DRAWS = 20_000_000
"""Maximum number of rows drawn for an interval, so that a million rows take seconds, not hours."""


def metric_entry(
    value: float,
    rows: int,
    interval: tuple[float, float] | None = None,
    method: Literal["wilson", "bootstrap"] | None = None,
) -> MetricValue:
    """Return a metric with its interval.

    Args:
        value: the metric's value.
        rows: how many rows it was measured on.
        interval: its 95 % interval.
        method: how the interval was computed.
    """
    low, high = interval if interval is not None else (math.nan, math.nan)
    return MetricValue(value=value, low=low, high=high, interval=method, rows=rows)


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return a proportion's 95 % score interval (Wilson 1927).

    It is valid near 0 and 1, where the normal approximation leaves [0, 1].

    Returns:
        Lower and upper bound; NaN without trials.
    """
    if trials == 0:
        return math.nan, math.nan
    share = successes / trials
    spread = Z95 * math.sqrt(share * (1 - share) / trials + Z95**2 / (4 * trials**2))
    centre = share + Z95**2 / (2 * trials)
    scale = 1 + Z95**2 / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def bootstrap(
    statistic: Callable[[RowIndices], float], rows: int, seed: int, *, draws: int = MAX_DRAWS
) -> tuple[float, float]:
    """Return a statistic's 95 % percentile interval over resampled rows (Efron 1979).

    Args:
        statistic: maps row numbers, drawn with replacement, to a number; NaN if it is undefined.
        rows: how many rows to draw from.
        seed: for the draws.
        draws: how many rows to draw in all; there are always 100 to 1,000 resamples.

    Returns:
        The 2.5 % and 97.5 % quantiles; NaN if the statistic is undefined for every resample.
    """
    generator = np.random.default_rng(seed)
    return _percentile_interval(
        statistic(generator.integers(0, rows, rows)) for _ in range(_resamples(rows, draws))
    )


def bootstrap_groups(statistic: Callable[[Counts], float], sizes: Counts, seed: int) -> tuple[float, float]:
    """Return `bootstrap`'s interval for a statistic that depends only on how often each group is drawn.

    Rows with equal values form a group, for example those with the same true and predicted class. The number
    of rows drawn from each group has a multinomial distribution. It is drawn directly, so a resample takes as
    long as there are groups, not rows.

    Args:
        statistic: maps the row counts drawn from each group, shaped as `sizes`, to a number.
        sizes: each group's row count, in any shape.
        seed: for the draws.
    """
    rows = int(sizes.sum())
    generator = np.random.default_rng(seed)
    shares = sizes.reshape(-1) / max(rows, 1)
    return _percentile_interval(
        statistic(generator.multinomial(rows, shares).reshape(sizes.shape))
        for _ in range(_resamples(rows, MAX_DRAWS))
    )


def _resamples(rows: int, draws: int) -> int:
    return min(1000, max(100, draws // rows)) if rows else 0


def _percentile_interval(statistics: Iterable[float]) -> tuple[float, float]:
    drawn = np.fromiter(statistics, np.float64)
    # A resample may lack a class, which leaves the statistic undefined.
    drawn = drawn[np.isfinite(drawn)]
    if drawn.size == 0:
        return math.nan, math.nan
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)
