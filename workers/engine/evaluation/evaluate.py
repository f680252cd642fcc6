"""Evaluates predictions for any task. Needs no model."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.messages.reports.evaluation import EvaluationReport
from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.data.weights import RowWeights
from workers.engine.evaluation.classification import (
    class_names,
    evaluate_classes,
    evaluate_labels,
    predicted_classes,
    probabilities,
)
from workers.engine.evaluation.regression import columns, evaluate_regression
from workers.engine.formulas import quoted


def evaluate(
    task: Task,
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    class_labels: Sequence[str] = (),
    seed: int = 0,
    weights: RowWeights | None = None,
) -> EvaluationReport:
    """Compare predictions with the true values.

    Args:
        task: the prediction task.
        y_true: class numbers, (rows,); 0 or 1, (rows, labels); or targets, (rows,) or (rows, outputs).
        y_pred: probabilities or predicted targets as the model returned them. A binary model may return one
            column (probability of class 1) or two.
        class_labels: the classes, labels or regression outputs.
        seed: for every bootstrap; equal arguments give equal results.
        weights: row weights; None if each counts once. The field `weighted_by` lists the weighted parts.

    Raises:
        ValueError: the numbers of rows differ, or there are no rows.
    """
    truth, guess = np.asarray(y_true), np.asarray(y_pred)
    if len(truth) != len(guess) or len(truth) == 0:
        raise ValueError(f"{len(truth)} true rows and {len(guess)} predicted ones cannot be compared")
    values = None if weights is None else weights.values
    report: EvaluationReport
    if task == "multilabel":
        report = evaluate_labels(truth, guess, class_labels, seed, values)
    elif task == "regression":
        report = evaluate_regression(truth, guess, class_labels, seed, values)
    else:
        report = evaluate_classes(task, truth, guess, class_labels, seed, values)
    return report if weights is None else report.model_copy(update={"weighted_by": weights.column})


def scores(evaluation: EvaluationReport) -> dict[str, float | None]:
    """Return an evaluation's metrics without intervals: `{"accuracy": 0.97, …}`."""
    return {name: metric.value for name, metric in evaluation.metrics.items()}


def write_predictions(
    path: Path,
    task: Task,
    rows: npt.ArrayLike,
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    class_labels: Sequence[str] = (),
) -> None:
    """Write a CSV file with each row's number, true value, prediction and probabilities.

    Args:
        path: the file's path.
        task: the prediction task.
        rows: row numbers in the data set, (rows,).
        y_true, y_pred, class_labels: see `evaluate`.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows(_lines(task, np.asarray(rows), np.asarray(y_true), np.asarray(y_pred), class_labels))


def _lines(
    task: Task,
    rows: Array,
    y_true: Array,
    y_pred: Array,
    class_labels: Sequence[str],
) -> Iterator[list[Any]]:
    numbers = [int(row) for row in rows]
    if task == "regression":
        truth, guess = columns(y_true), columns(y_pred)
        suffixes = [""] if truth.shape[1] == 1 else [f"_{k}" for k in range(truth.shape[1])]
        yield [
            "row",
            *(f"y_true{suffix}" for suffix in suffixes),
            *(f"y_pred{suffix}" for suffix in suffixes),
        ]
        for number, t, g in zip(numbers, truth.tolist(), guess.tolist(), strict=True):
            yield [number, *t, *g]
        return
    p = y_pred.astype(np.float64) if task == "multilabel" else probabilities(y_pred)
    names = class_names(class_labels, p.shape[1])
    yield ["row", "y_true", "y_pred", *(f"p_{name}" for name in names)]
    for number, t, g, p_row in zip(
        numbers,
        _named(task, y_true, names),
        _named(task, y_pred, names, predicted=True),
        p.tolist(),
        strict=True,
    ):
        yield [number, quoted(t), quoted(g), *p_row]


def _named(task: Task, values: Array, names: Sequence[str], *, predicted: bool = False) -> list[str]:
    """Return each row's class name; for multilabel its labels, joined by `|`."""
    if task == "multilabel":
        return ["|".join(str(names[int(k)]) for k in np.flatnonzero(row > 0.5)) for row in values]
    numbers = predicted_classes(values) if predicted else values.reshape(-1).astype(np.int64)
    return [str(names[k]) if k >= 0 else "" for k in numbers]
