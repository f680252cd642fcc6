"""Evaluates regressors with one or several target columns."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.engine.evaluation.intervals import bootstrap, finite_or_none, metric_entry

Floats = npt.NDArray[np.float64]

PAIRS = 500
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


METRICS = {"rmse": rmse, "mae": mae, "r2": r_squared}


def _histogram(residuals: Floats) -> dict[str, Any]:
    if residuals.size == 0:
        return {"counts": [], "edges": []}
    counts, edges = np.histogram(residuals, bins=HISTOGRAM_BINS)
    return {"counts": counts.tolist(), "edges": edges.tolist()}


def _summary(residuals: Floats) -> dict[str, Any]:
    if residuals.size == 0:
        return {}
    p05, median, p95 = np.percentile(residuals, [5, 50, 95])
    numbers = {
        "mean": residuals.mean(),
        "std": residuals.std(),
        "min": residuals.min(),
        "p05": p05,
        "median": median,
        "p95": p95,
        "max": residuals.max(),
    }
    return {name: finite_or_none(value) for name, value in numbers.items()}


def _output(name: str, truth: Floats, guess: Floats, seed: int) -> dict[str, Any]:
    """Return the metrics of one target column, and the residuals y - ŷ of its finite predictions."""
    finite_rows = np.flatnonzero(np.isfinite(guess))
    chosen = np.sort(np.random.default_rng(seed).permutation(finite_rows)[:PAIRS])
    residuals = truth[finite_rows] - guess[finite_rows]
    t, g = truth[:, None], guess[:, None]
    return {
        "name": name,
        **{metric: finite_or_none(function(t, g)) for metric, function in METRICS.items()},
        "residuals": _summary(residuals),
        "histogram": _histogram(residuals),
        "pairs": [[float(truth[i]), float(guess[i])] for i in chosen],
    }


def evaluate_regression(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, names: Sequence[str], seed: int
) -> dict[str, Any]:
    """Evaluate a regressor.

    Args:
        y_true: targets, shape (rows,) or (rows, outputs).
        y_pred: predictions of the same size, in the target's unit.
        names: one name per output, or empty.
        seed: of the bootstrap and of the selection of pairs.

    Returns:
        See `evaluate.evaluate`.
    """
    truth, guess = columns(y_true), columns(y_pred)
    rows, outputs = truth.shape
    labels = (
        list(names) if len(names) == outputs else [f"y{k}" if outputs > 1 else "y" for k in range(outputs)]
    )
    metrics = {}
    for metric, function in METRICS.items():
        interval = bootstrap(lambda i, f=function: f(truth[i], guess[i]), rows, seed)  # type: ignore[misc]
        metrics[metric] = metric_entry(function(truth, guess), rows, interval, "bootstrap")
    return {
        "rows": rows,
        "nonfinite_rows": int((~np.isfinite(guess).all(axis=1)).sum()),
        "metrics": metrics,
        "target_std": finite_or_none(truth.std(axis=0).mean()),
        "outputs": [_output(labels[k], truth[:, k], guess[:, k], seed) for k in range(outputs)],
    }
