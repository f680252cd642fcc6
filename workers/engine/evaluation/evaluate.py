"""Evaluation from arrays alone: no model, no Keras. Results are plain JSON; NaN and infinities are null.

`evaluate` returns, for every task:

    task, rows, nonfinite_rows
    metrics       {name: {"value", "low", "high", "interval": "wilson" | "bootstrap" | null, "rows"}},
                  low and high bound the 95 % interval
and for binary and multiclass
    class_labels, per_class [{"label", "precision", "recall", "f1", "support"}],
    confusion     rows = true class, columns = predicted class
    calibration   {"ece", "bins": [{"low", "high", "rows", "confidence", "accuracy"}]}
    roc_curve     binary only: [[false positive rate, true positive rate], …]
for multilabel the same, with `confusion_per_label` [[[tn, fp], [fn, tp]], …] in place of `confusion`,
and for regression
    target_std, outputs [{"name", "rmse", "mae", "r2", "residuals": {…},
                  "histogram": {"counts", "edges"}, "pairs": [[y, ŷ], …]}]
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.contracts.data import Task
from jobs.contracts.search import Direction
from workers.engine.evaluation.classification import (
    evaluate_classes,
    evaluate_labels,
    predicted_classes,
    probabilities,
    row_losses,
)
from workers.engine.evaluation.regression import columns, evaluate_regression


def primary_metric(task: Task) -> tuple[str, Direction]:
    """Return the metric that candidates of this task are compared by, and which way is better."""
    return ("rmse", "min") if task == "regression" else ("accuracy", "max")


def evaluate(
    task: Task,
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    class_labels: Sequence[str] = (),
    seed: int = 0,
) -> dict[str, Any]:
    """Measure predictions against the truth.

    Args:
        task: what is predicted.
        y_true: class numbers (rows,), yes/no (rows, labels), or targets (rows,) or (rows, outputs).
        y_pred: probabilities or predicted targets as the model gave them; a binary model may give
            one column (probability of class 1) or two.
        class_labels: names of classes, labels or regression outputs.
        seed: of every bootstrap in it; equal arguments give equal results.

    Raises:
        ValueError: the two do not have the same number of rows, or there is none.
    """
    truth, guess = np.asarray(y_true), np.asarray(y_pred)
    if len(truth) != len(guess) or len(truth) == 0:
        raise ValueError(f"{len(truth)} true rows and {len(guess)} predicted ones cannot be compared")
    measure = {"multilabel": evaluate_labels, "regression": evaluate_regression}.get(task, evaluate_classes)
    return {"task": task, **measure(truth, guess, class_labels, seed)}


def scores(evaluation: dict[str, Any]) -> dict[str, float | None]:
    """Return the bare numbers of an evaluation: `{"accuracy": 0.97, …}`."""
    return {name: metric["value"] for name, metric in evaluation["metrics"].items()}


def loss_of(task: Task, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> float:
    """Return the mean loss that weights are fitted by: log loss, or mean squared error for regression."""
    if task == "regression":
        return float(np.mean((columns(y_true) - columns(y_pred)) ** 2))
    if task == "multilabel":
        p = np.clip(np.asarray(y_pred, np.float64), 1e-7, 1 - 1e-7)
        truth = np.asarray(y_true).reshape(p.shape) > 0.5
        return float(-np.where(truth, np.log(p), np.log1p(-p)).mean())
    return float(row_losses(y_true, y_pred).mean())


def write_predictions(
    path: Path,
    task: Task,
    rows: npt.ArrayLike,
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    class_labels: Sequence[str] = (),
) -> None:
    """Write one CSV line a row: its number in the data set, the truth, the prediction, the probabilities."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows(_lines(task, np.asarray(rows), np.asarray(y_true), np.asarray(y_pred), class_labels))


def _lines(
    task: Task,
    rows: npt.NDArray[Any],
    y_true: npt.NDArray[Any],
    y_pred: npt.NDArray[Any],
    class_labels: Sequence[str],
) -> Iterator[list[Any]]:
    numbers = [int(row) for row in rows]
    if task == "regression":
        truth, guess = columns(y_true), columns(y_pred)
        ends = [""] if truth.shape[1] == 1 else [f"_{k}" for k in range(truth.shape[1])]
        yield ["row", *(f"y_true{end}" for end in ends), *(f"y_pred{end}" for end in ends)]
        for number, t, g in zip(numbers, truth.tolist(), guess.tolist(), strict=True):
            yield [number, *t, *g]
        return
    p = y_pred.astype(np.float64) if task == "multilabel" else probabilities(y_pred)
    names = class_labels if len(class_labels) == p.shape[1] else [str(k) for k in range(p.shape[1])]
    yield ["row", "y_true", "y_pred", *(f"p_{name}" for name in names)]
    for number, t, g, chances in zip(
        numbers,
        _named(task, y_true, names),
        _named(task, y_pred, names, predicted=True),
        p.tolist(),
        strict=True,
    ):
        yield [number, t, g, *chances]


def _named(
    task: Task, values: npt.NDArray[Any], names: Sequence[str], *, predicted: bool = False
) -> list[str]:
    """Name each row's class; for multilabel its labels, joined by a bar."""
    if task == "multilabel":
        return ["|".join(str(names[int(k)]) for k in np.flatnonzero(row > 0.5)) for row in values]
    numbers = predicted_classes(values) if predicted else values.reshape(-1).astype(np.int64)
    return [str(names[k]) if k >= 0 else "" for k in numbers]
