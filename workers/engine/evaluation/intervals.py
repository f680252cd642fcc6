"""Uncertainty of a number measured on a finite set of rows."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]
Z95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

DRAWS_IN_ALL = 20_000_000
"""Upper bound on drawn row numbers, so that a million rows take seconds, not hours."""


def finite(value: float | np.floating[Any]) -> float | None:
    """Return a plain float, or None where JSON has no such number."""
    number = float(value)
    return number if math.isfinite(number) else None


def measured(
    value: float, rows: int, interval: tuple[float, float] | None = None, method: str | None = None
) -> dict[str, Any]:
    """Put a metric, its 95 % interval, how that was found and on how many rows into one JSON object."""
    low, high = interval if interval is not None else (math.nan, math.nan)
    return {
        "value": finite(value),
        "low": finite(low),
        "high": finite(high),
        "interval": method,
        "rows": rows,
    }


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a proportion (Wilson 1927).

    It keeps its promise near 0 and 1, where the normal approximation leaves [0, 1].
    """
    if trials == 0:
        return math.nan, math.nan
    share = successes / trials
    spread = Z95 * math.sqrt(share * (1 - share) / trials + Z95**2 / (4 * trials**2))
    centre = share + Z95**2 / (2 * trials)
    scale = 1 + Z95**2 / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def bootstrap(statistic: Callable[[Rows], float], rows: int, seed: int) -> tuple[float, float]:
    """Return the 95 % percentile interval of a statistic over resampled rows (Efron 1979).

    Args:
        statistic: maps row numbers, drawn with replacement, to a number; NaN where it is undefined.
        rows: how many rows there are to draw from.
        seed: makes the draws repeatable.

    Returns:
        The 2.5 % and 97.5 % quantiles; NaN twice when no resample had a defined value.
    """
    if rows == 0:
        return math.nan, math.nan
    generator = np.random.default_rng(seed)
    resamples = min(1000, max(100, DRAWS_IN_ALL // rows))
    drawn = np.array([statistic(generator.integers(0, rows, rows)) for _ in range(resamples)])
    drawn = drawn[np.isfinite(drawn)]
    if drawn.size == 0:
        return math.nan, math.nan
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)
