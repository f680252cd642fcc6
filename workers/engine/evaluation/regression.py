"""Evaluates regressors with one or several target columns."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from jobs.messages.reports.base import MetricValue
from jobs.messages.reports.evaluation import (
    Histogram,
    OutputReport,
    RegressionEvaluation,
    ResidualSummary,
)
from workers.engine.arrays import Floats, can_divide
from workers.engine.evaluation.intervals import RowIndices, bootstrap, metric_entry
from workers.engine.evaluation.weighting import Weights, column_means, column_sums, mean, of_rows

PAIRS = 500
"""Maximum number of (true, predicted) pairs for a scatter plot."""
HISTOGRAM_BINS = 20


def columns(y: npt.ArrayLike) -> Floats:
    """Reshape targets or predictions to (rows, outputs)."""
    values = np.asarray(y, np.float64)
    return values.reshape(len(values), -1)


def r_squared(truth: Floats, guess: Floats, weights: Weights = None) -> float:
    """Return 1 - SSE / SST averaged over outputs; NaN if a target is constant."""
    total = column_sums((truth - column_means(truth, weights)) ** 2, weights)
    if not (total > 0).all():
        return math.nan
    return float(np.mean(1 - column_sums((truth - guess) ** 2, weights) / total))


def rmse(truth: Floats, guess: Floats, weights: Weights = None) -> float:
    """Return the root mean squared error over rows and outputs, in the target's unit."""
    return math.sqrt(mean((truth - guess) ** 2, weights))


def mae(truth: Floats, guess: Floats, weights: Weights = None) -> float:
    """Return the mean absolute error over rows and outputs, in the target's unit."""
    return mean(np.abs(truth - guess), weights)


METRICS: dict[str, Callable[[Floats, Floats, Weights], float]] = {"rmse": rmse, "mae": mae, "r2": r_squared}


def _histogram(residuals: Floats) -> Histogram:
    if residuals.size == 0:
        return Histogram()
    low, high = float(residuals.min()), float(residuals.max())
    if not can_divide(low, high, HISTOGRAM_BINS):
        # As NumPy does for equal numbers, but wide enough for large ones.
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    counts, edges = np.histogram(residuals, bins=HISTOGRAM_BINS, range=(low, high))
    return Histogram(counts=tuple(counts.tolist()), edges=tuple(edges.tolist()))


def _summary(residuals: Floats) -> ResidualSummary:
    if residuals.size == 0:
        return ResidualSummary()
    p05, median, p95 = np.percentile(residuals, [5, 50, 95])
    return ResidualSummary(
        mean=residuals.mean(),
        std=residuals.std(),
        min=residuals.min(),
        p05=p05,
        median=median,
        p95=p95,
        max=residuals.max(),
    )


def _output(name: str, truth: Floats, guess: Floats, seed: int, weights: Weights) -> OutputReport:
    """Return one target column's metrics, and the residuals y - ŷ for its finite predictions.

    The residuals' distribution counts each row once.
    """
    # A diverged model predicts NaN or infinity, for which neither a histogram nor percentiles are defined.
    finite_rows = np.flatnonzero(np.isfinite(guess))
    chosen = np.sort(np.random.default_rng(seed).permutation(finite_rows)[:PAIRS])
    residuals = truth[finite_rows] - guess[finite_rows]
    t, g = truth[:, None], guess[:, None]
    return OutputReport(
        name=name,
        rmse=rmse(t, g, weights),
        mae=mae(t, g, weights),
        r2=r_squared(t, g, weights),
        residuals=_summary(residuals),
        histogram=_histogram(residuals),
        pairs=tuple((float(truth[i]), float(guess[i])) for i in chosen),
    )


def evaluate_regression(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    names: Sequence[str],
    seed: int,
    weights: Weights = None,
) -> RegressionEvaluation:
    """Evaluate a regressor.

    Args:
        y_true: targets, shape (rows,) or (rows, outputs).
        y_pred: predictions with the same size, in the target's unit.
        names: one name per output, or empty.
        seed: for the bootstrap and for drawing pairs.
        weights: row weights, (rows,); None if each counts once.
    """
    truth, guess = columns(y_true), columns(y_pred)
    rows, outputs = truth.shape
    labels = (
        list(names) if len(names) == outputs else [f"y{k}" if outputs > 1 else "y" for k in range(outputs)]
    )

    def entry(metric: Callable[[Floats, Floats, Weights], float]) -> MetricValue:
        def of_drawn(drawn: RowIndices) -> float:
            return metric(truth[drawn], guess[drawn], of_rows(weights, drawn))

        value = metric(truth, guess, weights)
        return metric_entry(value, rows, bootstrap(of_drawn, rows, seed), "bootstrap")

    return RegressionEvaluation(
        task="regression",
        rows=rows,
        nonfinite_rows=int((~np.isfinite(guess).all(axis=1)).sum()),
        metrics={name: entry(metric) for name, metric in METRICS.items()},
        target_std=np.sqrt(column_means((truth - column_means(truth, weights)) ** 2, weights)).mean(),
        outputs=tuple(_output(labels[k], truth[:, k], guess[:, k], seed, weights) for k in range(outputs)),
    )
