"""Pools trained members into one `.keras` of built-in layers and shows what that gained.

Weights are fitted on predictions that the members made before they saw validation data, and are then
carried to the members retrained on training and validation data.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from jobs.kinds.ensemble.payload import EnsembleTask
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.table import Array
from workers.engine.errors import EngineError
from workers.engine.evaluation.ensemble_weights import Floats, pool
from workers.engine.evaluation.evaluate import evaluate, scores
from workers.engine.evaluation.members import BadMembers, judge, read_pool, warnings
from workers.engine.models.build import measure_scaling, signature_of
from workers.engine.models.files import load_model, save_model
from workers.engine.models.losses import loss_name, measure, metric_names
from workers.engine.models.predict import Predictor
from workers.engine.report import Report
from workers.engine.tasks.artifacts import (
    summary_of,
    write_json,
    write_test_predictions,
    write_validation_predictions,
)
from workers.engine.tasks.steps import Steps

CHECKED_ROWS = 64
FILE = "ensemble.keras"

TOLERANCE = 1e-5
"""How far the saved model may be from the members' weighted mean, relative to the predictions' size."""

TOLERANCE_HALF = 1e-2
"""The same where members compute in 16 bits, whose rounding depends on how operations are fused."""


def run(task: EnsembleTask, report: Report) -> dict[str, Any]:
    """Fit the weights, build and save the ensemble, evaluate it once on test data.

    Raises:
        BadMembers: the members were not predicted on the same rows, or do not fit together.
        BadData, BadSpec: the data set cannot be read as the spec says.
    """
    steps = Steps(report, 4)
    dataset, seed = load_dataset(task.dataset, task.spec.data), task.spec.data.split.seed
    test, labels = dataset.parts.test, dataset.profile.class_labels
    pooled = read_pool(task.members, dataset.task)

    steps.begin(f"fitting weights of {len(task.members)} members on {len(pooled.rows)} validation rows")
    judged = judge(pooled, task.ensemble.method, seed)
    weights = np.array([entry["weight"] for entry in judged["weights"]])
    for code, message in warnings(judged, task.members):
        report.warning(code, message)

    steps.begin("joining the members into one model")
    members = [load_model(Path(member.model), Path(task.folder)) for member in task.members]
    model = _saved(join(members, weights), Path(task.folder))

    steps.begin("evaluating on test data")
    predict = Predictor(model)
    sample = dataset.x[dataset.parts.validation[:CHECKED_ROWS]]
    judged["difference"] = _check_same(model, members, weights, sample, predict(sample))
    y_pred = predict(dataset.x[test])
    evaluation = evaluate(dataset.task, dataset.y[test], y_pred, labels, seed)

    steps.begin("writing the report")
    _hand_in_model(report, model, judged, evaluation)
    write_test_predictions(report, dataset.task, test, dataset.y[test], y_pred, labels)
    combined = pool(pooled.predictions, weights).astype(np.float32)
    write_validation_predictions(report, pooled.rows, pooled.y_true, combined)
    steps.done()
    metrics = {"validation": figures(pooled.y_true, combined, task, dataset), "test": scores(evaluation)}
    return {"metrics": metrics, **_facts(model, judged, task, dataset)}


def _saved(model: Any, folder: Path) -> Any:
    """Save a model and return it as it loads: what is evaluated is what is handed in."""
    save_model(model, folder / FILE)
    return load_model(folder / FILE, folder)


def _hand_in_model(report: Report, model: Any, judged: dict[str, Any], evaluation: dict[str, Any]) -> None:
    """Leave behind the saved ensemble and what is known of it."""
    report.artifact("model", FILE, name=FILE)
    write_json(report, "evaluation", "evaluation.json", evaluation)
    write_json(report, "report", "ensemble.json", judged)
    write_json(report, "summary", "summary.json", summary_of(model))


def _facts(model: Any, judged: dict[str, Any], task: EnsembleTask, dataset: Dataset) -> dict[str, Any]:
    """Return what the job keeps in its row besides the metrics."""
    return {
        "weights": judged["weights"],
        "best_single": judged["best_single"],
        "members": [member.name for member in task.members],
        "signature": signature_of(model).model_dump(mode="json"),
        "class_labels": list(dataset.profile.class_labels),
        "parameters": int(model.count_params()),
        "test_rows": len(dataset.parts.test),
        "note": judged["note"],
    }


def figures(y_true: Array, y_pred: Array, task: EnsembleTask, dataset: Dataset) -> dict[str, Any]:
    """Return loss and metrics by the names that trainings report them under, so both compare."""
    train = dataset.parts.train
    scaling = measure_scaling(dataset.x[train], dataset.y[train], dataset.profile)
    fit = task.spec.fit
    named = measure(
        loss_name(fit, dataset.task), metric_names(fit, dataset.task), y_true, y_pred, scaling.y_std
    )
    return {**scores(evaluate(dataset.task, y_true, y_pred)), **named}


def join(members: Sequence[Any], weights: Floats) -> Any:
    """Return one model that gives the weighted mean of the members' predictions.

    Built-in layers only (`Rescaling` by each weight, then `Add`), so it loads in safe mode anywhere.
    Members without weight are left out.

    Raises:
        BadMembers: the members take different inputs.
    """
    kept = [(member, float(weight)) for member, weight in zip(members, weights, strict=True) if weight > 0]
    shapes = {tuple(member.input_shape) for member, _ in kept}
    if len(shapes) > 1:
        raise BadMembers(f"the members take inputs of different shapes: {sorted(map(str, shapes))}")
    for number, (member, _) in enumerate(kept):
        if [m.name for m, _ in kept].count(member.name) > 1:
            member.name = f"{member.name}_{number}"
    first = kept[0][0].inputs[0]
    inputs = keras.Input(first.shape[1:], dtype=first.dtype, name=first.name)
    parts = [
        keras.layers.Rescaling(weight, dtype="float32", name=f"weight_{number}")(member(inputs))
        for number, (member, weight) in enumerate(kept, start=1)
    ]
    pooled = keras.layers.Add(dtype="float32", name="output")(parts) if len(parts) > 1 else parts[0]
    return keras.Model(inputs, pooled, name="ensemble")


def _check_same(model: Any, members: Sequence[Any], weights: Floats, x: Array, pooled: Array) -> float:
    """Return the largest difference between the loaded ensemble and its members' weighted mean."""
    used = [(member, weight) for member, weight in zip(members, weights, strict=True) if weight > 0]
    expected = pool([Predictor(member)(x) for member, _ in used], np.array([weight for _, weight in used]))
    difference = float(np.abs(pooled - expected).max())
    half = any("16" in str(layer.compute_dtype) for layer in model._flatten_layers())
    limit = (TOLERANCE_HALF if half else TOLERANCE) * max(1.0, float(np.abs(expected).max()))
    if not difference <= limit:
        raise EngineError(
            f"the saved ensemble differs from its members' weighted mean by {difference:.3g}, "
            f"more than {limit:.3g}"
        )
    return difference
