"""Computes Pearson's correlations between numeric columns, on the rows that have both values."""

import numpy as np
from threadpoolctl import threadpool_limits

from jobs.messages.overview import CORRELATED_COLUMNS, Correlations
from workers.engine.arrays import Array

MIN_ROWS = 3
LEAST_VARIANCE = 1e-9
"""Of standardized columns. Below it, the rows that both columns have are constant in one of them."""


def correlations(names: list[str], columns: list[Array], numeric: int) -> Correlations | None:
    """Return the correlations between the columns that have the largest; None for fewer than two columns.

    Args:
        names: the column names.
        columns: numbers with NaN for missing ones, (rows,) each.
        numeric: how many numeric columns the table has.
    """
    if len(names) < 2:
        return None
    # The products are small: threads would wait for each other longer than they compute.
    with threadpool_limits(limits=1, user_api="blas"):
        correlated = correlate(columns)
    others = np.abs(np.nan_to_num(correlated))
    np.fill_diagonal(others, 0)
    order = np.argsort(-others.max(axis=1), kind="stable")[:CORRELATED_COLUMNS]
    largest = correlated[np.ix_(order, order)]
    values = tuple(tuple(None if np.isnan(r) else round(float(r), 3) for r in row) for row in largest)
    return Correlations(
        columns=tuple(names[i] for i in order), values=values, considered=len(names), numeric=numeric
    )


def correlate(columns: list[Array]) -> Array:
    """Return Pearson's r for each column pair, (columns, columns); NaN where it is not defined."""
    standardized = np.stack([_standardized(column) for column in columns])
    is_number = ~np.isnan(standardized)
    z, has = np.nan_to_num(standardized), is_number.astype(np.float64)
    rows = has @ has.T
    with np.errstate(divide="ignore", invalid="ignore"):
        # [i, j]: of column i, over the rows in which j is known too.
        mean = (z @ has.T) / rows
        variance = (z**2 @ has.T) / rows - mean**2
        r = ((z @ z.T) / rows - mean * mean.T) / np.sqrt(variance * variance.T)
    defined = (rows >= MIN_ROWS) & (variance > LEAST_VARIANCE) & (variance.T > LEAST_VARIANCE)
    return np.where(defined, np.clip(r, -1, 1), np.nan)


def _standardized(column: Array) -> Array:
    numbers = column[~np.isnan(column)]
    largest = float(np.abs(numbers).max()) if len(numbers) else 0.0
    # The square of a larger number may be infinite.
    scaled = column / (largest or 1.0)
    numbers = numbers / (largest or 1.0)
    std = float(numbers.std()) if len(numbers) else 0.0
    # Of a constant column, rounding alone would remain.
    return (scaled - numbers.mean()) / std if std > 1e-12 else np.where(np.isnan(column), np.nan, 0.0)
