"""Computes confidence intervals of metrics that are measured on a finite number of rows."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

RowIndices = npt.NDArray[np.intp]
Z95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

MAX_DRAWS = 20_000_000
"""Maximum number of rows drawn for an interval, so that a million rows take seconds, not hours."""


def finite_or_none(value: float | np.floating[Any]) -> float | None:
    """Return `value` as a float, or None if it is NaN or infinite, which JSON cannot represent."""
    number = float(value)
    return number if math.isfinite(number) else None


def metric_entry(
    value: float, rows: int, interval: tuple[float, float] | None = None, method: str | None = None
) -> dict[str, Any]:
    """Return the JSON object of a metric.

    Args:
        value: of the metric.
        rows: number of rows it was measured on.
        interval: bounds of its 95 % interval.
        method: how the interval was computed, `wilson` or `bootstrap`.
    """
    low, high = interval if interval is not None else (math.nan, math.nan)
    return {
        "value": finite_or_none(value),
        "low": finite_or_none(low),
        "high": finite_or_none(high),
        "interval": method,
        "rows": rows,
    }


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a proportion (Wilson 1927).

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


def bootstrap(statistic: Callable[[RowIndices], float], rows: int, seed: int) -> tuple[float, float]:
    """Return the 95 % percentile interval of a statistic over resampled rows (Efron 1979).

    Args:
        statistic: maps row numbers, drawn with replacement, to a number; NaN if it is undefined.
        rows: number of rows to draw from.
        seed: of the draws.

    Returns:
        The 2.5 % and 97.5 % quantiles; NaN if the statistic is undefined for every resample.
    """
    if rows == 0:
        return math.nan, math.nan
    generator = np.random.default_rng(seed)
    resamples = min(1000, max(100, MAX_DRAWS // rows))
    drawn = np.array([statistic(generator.integers(0, rows, rows)) for _ in range(resamples)])
    drawn = drawn[np.isfinite(drawn)]
    if drawn.size == 0:
        return math.nan, math.nan
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)
