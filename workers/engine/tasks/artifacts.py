"""Writes a task's artifacts in the formats that pages and later tasks read."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobs.messages.events import Role
from jobs.messages.reports.base import ModelReport
from jobs.messages.reports.model_summary import LayerSummary, ModelSummary, VariableSummary
from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.evaluation.evaluate import write_predictions
from workers.engine.models.architecture import architecture_of, bytes_of
from workers.engine.report import Report


def write_json(report: Report, role: Role, name: str, body: ModelReport) -> None:
    """Write `body` to the file `name` in the task's folder and report it as an artifact."""
    (Path(report.folder) / name).write_text(body.model_dump_json(indent=1), encoding="utf-8")
    report.artifact(role, name, name=name)


def write_test_predictions(
    report: Report, task: Task, rows: Array, y_true: Array, y_pred: Array, class_labels: Sequence[str]
) -> None:
    """Write the predictions for the test rows as a CSV file. See `evaluate.write_predictions`."""
    path = Path(report.folder) / "predictions.csv"
    write_predictions(path, task, rows, y_true, y_pred, class_labels)
    report.artifact("predictions", path.name, name=path.name)


def write_validation_predictions(report: Report, rows: Array, y_true: Array, y_pred: Array) -> None:
    """Write the arrays `rows`, `y_true` and `y_pred` for the validation rows, for the ensemble task."""
    path = Path(report.folder) / "validation_predictions.npz"
    np.savez(path, rows=rows, y_true=y_true, y_pred=y_pred)
    report.artifact("validation_predictions", path.name, name=path.name)


def summary_of(model: Any) -> ModelSummary:
    """Return a model's size, layers and graph, and the summary that Keras prints."""
    text = io.StringIO()
    model.summary(expand_nested=True, line_length=100, print_fn=lambda line: text.write(f"{line}\n"))
    trainable = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    graph = architecture_of(model)
    return ModelSummary(
        name=model.name,
        parameters=int(model.count_params()),
        trainable=trainable,
        bytes=bytes_of(model.variables),
        layers=tuple(_layer(layer) for layer in model.layers),
        text=text.getvalue(),
        graph=graph.nodes,
        graph_omitted=graph.omitted,
    )


def _layer(layer: Any) -> LayerSummary:
    # A layer that was never called has no `output`; that of a layer with several outputs is a list.
    shape = getattr(getattr(layer, "output", None), "shape", None)
    return LayerSummary(
        name=layer.name,
        kind=type(layer).__name__,
        output_shape=None if shape is None else tuple(shape),
        parameters=int(layer.count_params()),
        variables=tuple(
            VariableSummary(path=v.path, shape=tuple(v.shape), dtype=str(v.dtype)) for v in layer.variables
        ),
    )
