"""Evaluates regressors with one or several target columns."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from jobs.contracts.model_reports.base import MetricValue
from jobs.contracts.model_reports.evaluation import (
    Histogram,
    OutputReport,
    RegressionEvaluation,
    ResidualSummary,
)
from workers.engine.arrays import Floats
from workers.engine.evaluation.intervals import RowIndices, bootstrap, metric_entry

PAIRS = 500
"""Maximum number of (true, predicted) pairs for a scatter plot."""
HISTOGRAM_BINS = 20


def columns(y: npt.ArrayLike) -> Floats:
    """Reshape targets or predictions to (rows, outputs)."""
    values = np.asarray(y, np.float64)
    return values.reshape(len(values), -1)


def r_squared(truth: Floats, guess: Floats) -> float:
    """Return 1 - SSE / SST averaged over outputs; NaN if a target is constant."""
    total = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    if (total == 0).any():
        return math.nan
    return float(np.mean(1 - ((truth - guess) ** 2).sum(axis=0) / total))


def rmse(truth: Floats, guess: Floats) -> float:
    """Return the root of the mean squared error over rows and outputs, in the target's unit."""
    return math.sqrt(float(np.mean((truth - guess) ** 2)))


def mae(truth: Floats, guess: Floats) -> float:
    """Return the mean absolute error over rows and outputs, in the target's unit."""
    return float(np.mean(np.abs(truth - guess)))


METRICS: dict[str, Callable[[Floats, Floats], float]] = {"rmse": rmse, "mae": mae, "r2": r_squared}


def _histogram(residuals: Floats) -> Histogram:
    if residuals.size == 0:
        return Histogram()
    counts, edges = np.histogram(residuals, bins=HISTOGRAM_BINS)
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


def _output(name: str, truth: Floats, guess: Floats, seed: int) -> OutputReport:
    """Return the metrics of one target column, and the residuals y - ŷ of its finite predictions."""
    # A diverged model predicts NaN or infinity, for which neither a histogram nor percentiles are defined.
    finite_rows = np.flatnonzero(np.isfinite(guess))
    chosen = np.sort(np.random.default_rng(seed).permutation(finite_rows)[:PAIRS])
    residuals = truth[finite_rows] - guess[finite_rows]
    t, g = truth[:, None], guess[:, None]
    return OutputReport(
        name=name,
        rmse=rmse(t, g),
        mae=mae(t, g),
        r2=r_squared(t, g),
        residuals=_summary(residuals),
        histogram=_histogram(residuals),
        pairs=tuple((float(truth[i]), float(guess[i])) for i in chosen),
    )


def evaluate_regression(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, names: Sequence[str], seed: int
) -> RegressionEvaluation:
    """Evaluate a regressor.

    Args:
        y_true: targets, shape (rows,) or (rows, outputs).
        y_pred: predictions of the same size, in the target's unit.
        names: one name per output, or empty.
        seed: of the bootstrap and of the selection of pairs.
    """
    truth, guess = columns(y_true), columns(y_pred)
    rows, outputs = truth.shape
    labels = (
        list(names) if len(names) == outputs else [f"y{k}" if outputs > 1 else "y" for k in range(outputs)]
    )

    def entry(metric: Callable[[Floats, Floats], float]) -> MetricValue:
        def of_rows(drawn: RowIndices) -> float:
            return metric(truth[drawn], guess[drawn])

        return metric_entry(metric(truth, guess), rows, bootstrap(of_rows, rows, seed), "bootstrap")

    return RegressionEvaluation(
        task="regression",
        rows=rows,
        nonfinite_rows=int((~np.isfinite(guess).all(axis=1)).sum()),
        metrics={name: entry(metric) for name, metric in METRICS.items()},
        target_std=truth.std(axis=0).mean(),
        outputs=tuple(_output(labels[k], truth[:, k], guess[:, k], seed) for k in range(outputs)),
    )
