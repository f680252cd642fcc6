"""Runs the ensemble task: combines trained members into one stored model with built-in layers.

Weights are fitted to predictions that the members made before they were trained on validation data. They are
then applied to the members retrained on training and validation data.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np

from jobs.kinds.ensemble.payload import EnsembleTask
from jobs.messages.reports.ensemble import EnsembleReport
from jobs.spec.data.features import Features
from jobs.spec.exports import STORED
from workers.engine.arrays import Array, Floats
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.errors import EngineError
from workers.engine.evaluation.ensemble_weights import weighted_mean
from workers.engine.evaluation.evaluate import evaluate, scores
from workers.engine.evaluation.members import (
    BadMembers,
    MemberPredictions,
    compare_members,
    ensemble_warnings,
    read_predictions,
)
from workers.engine.exports.source import ExportSource
from workers.engine.exports.writing import write_model
from workers.engine.models.build import signature_of
from workers.engine.models.files import load_model
from workers.engine.models.losses import compute_metrics, loss_name, metric_names
from workers.engine.models.own_code.in_use import using_code
from workers.engine.models.predict import Predictor
from workers.engine.models.scaling import target_scale
from workers.engine.phases import announced_to
from workers.engine.report import Report
from workers.engine.tasks.artifacts import (
    summary_of,
    write_json,
    write_test_predictions,
    write_validation_predictions,
)
from workers.engine.tasks.steps import Steps
from workers.engine.tasks.tolerance import rounding_limit
from workers.features.files import read_features

CHECKED_ROWS = 64
"""Validation rows for which the saved ensemble is compared with its members."""
FILE = STORED.file_name("ensemble")


def run(task: EnsembleTask, report: Report) -> dict[str, Any]:
    """Fit the weights, build and save the ensemble, and evaluate it on test data.

    Returns:
        The job's result: `metrics` on validation and test data, weights, members and the model's signature.

    Raises:
        BadMembers: the members' validation rows or inputs differ.
        BadData, BadSpec: the data set cannot be read as the spec requires.
    """
    with using_code(task.code, Path(task.folder)):
        return _run(task, report)


def _run(task: EnsembleTask, report: Report) -> dict[str, Any]:
    steps = Steps(report, 4)
    seed = task.spec.required_data.split.seed
    with announced_to(report.phase):
        dataset = load_dataset(task.dataset, task.spec.required_data, task.spec.texts, task.in_memory_bytes)
    test, labels = dataset.parts.test, dataset.profile.class_labels
    predictions = read_predictions(task.members, dataset.task)
    predictions = replace(predictions, weights=dataset.weights_of(predictions.rows))

    steps.begin(f"fitting weights of {len(task.members)} members on {len(predictions.rows)} validation rows")
    comparison = compare_members(predictions, task.ensemble.method, seed, task.best_member)
    weights = np.array([entry.weight for entry in comparison.weights])
    for code, message in ensemble_warnings(comparison, task.members):
        report.warning(code, message)

    steps.begin("combining the members into one model")
    folder = Path(task.folder)
    members = [load_model(Path(member.model), folder) for member in task.members]
    features = common_features([Path(member.model) for member in task.members])
    # The file is what will be served, so it is evaluated rather than the model in memory.
    model = write_model(STORED, ExportSource(combine(members, weights), features), folder / FILE).model

    steps.begin("evaluating on test data")
    predict = Predictor(model)
    sample = dataset.rows_for(features, dataset.parts.validation[:CHECKED_ROWS])[:]
    difference = _check_difference(model, members, weights, sample, predict(sample))
    comparison = comparison.model_copy(update={"difference": difference})
    with announced_to(report.phase):
        y_pred = predict(dataset.rows_for(features, test))
    evaluation = evaluate(dataset.task, dataset.y[test], y_pred, labels, seed, dataset.weights_of(test))

    steps.begin("writing the report")
    report.artifact("model", FILE, name=FILE)
    write_json(report, "evaluation", "evaluation.json", evaluation)
    write_json(report, "report", "ensemble.json", comparison)
    write_json(report, "summary", "summary.json", summary_of(model))
    write_test_predictions(report, dataset.task, test, dataset.y[test], y_pred, labels)
    combined = weighted_mean(predictions.predictions, weights).astype(np.float32)
    write_validation_predictions(report, predictions.rows, predictions.y_true, combined)
    steps.done()
    metrics = {
        "validation": validation_metrics(predictions, combined, task, dataset),
        "test": scores(evaluation),
    }
    return {"metrics": metrics, **_details(model, features, comparison, task, dataset)}


def _details(
    model: Any, features: Features | None, comparison: EnsembleReport, task: EnsembleTask, dataset: Dataset
) -> dict[str, Any]:
    """Return the job's result without the metrics."""
    return {
        "weights": [entry.model_dump(mode="json") for entry in comparison.weights],
        "best_single": comparison.best_single,
        "members": [member.name for member in task.members],
        "signature": signature_of(model, features).model_dump(mode="json"),
        "class_labels": list(dataset.profile.class_labels),
        "parameters": int(model.count_params()),
        "test_rows": len(dataset.parts.test),
        "note": comparison.note,
    }


def validation_metrics(
    members: MemberPredictions, y_pred: Array, task: EnsembleTask, dataset: Dataset
) -> dict[str, Any]:
    """Return loss and metrics for the validation rows, under the names that trainings report.

    Pages compare them with the members'. Metrics that only the evaluation computes are added.

    Args:
        members: have the validation rows' true values and weights.
        y_pred: the ensemble's predictions for them, (rows, …).
        task: names the loss and the metrics.
        dataset: has the training rows.
    """
    # A training measures the loss of a regression in standard deviations of its target.
    scale = target_scale(dataset.y[dataset.parts.train], dataset.profile)
    fit, y_true = task.spec.fit, members.y_true
    named = compute_metrics(
        loss_name(fit, dataset.task),
        metric_names(fit, dataset.task),
        y_true,
        y_pred,
        scale,
        members.row_weights,
    )
    return {**scores(evaluate(dataset.task, y_true, y_pred, weights=members.weights)), **named}


def common_features(paths: Sequence[Path]) -> Features | None:
    """Return the pipeline that all members have; None if they have none.

    Raises:
        BadMembers: the pipelines differ, so no input suits all members.
    """
    first, *others = [read_features(path) for path in paths]
    if any(other != first for other in others):
        raise BadMembers("the members encode the columns of their data in different ways")
    return first


def combine(members: Sequence[Any], weights: Floats) -> Any:
    """Return one model that predicts the weighted mean of the members' predictions.

    It has only built-in layers (`Rescaling` by each weight, then `Add`), so it can be loaded in safe mode.
    Members with weight 0 are left out.

    Raises:
        BadMembers: the members' input shapes differ.
    """
    weighted_members = [
        (member, float(weight)) for member, weight in zip(members, weights, strict=True) if weight > 0
    ]
    shapes = {tuple(member.input_shape) for member, _ in weighted_members}
    if len(shapes) > 1:
        raise BadMembers(f"the members have different input shapes: {sorted(map(str, shapes))}")
    # Keras rejects a model with two layers of one name, and members may have equal names.
    for number, (member, _) in enumerate(weighted_members):
        if [m.name for m, _ in weighted_members].count(member.name) > 1:
            member.name = f"{member.name}_{number}"
    first = weighted_members[0][0].inputs[0]
    inputs = keras.Input(first.shape[1:], dtype=first.dtype, name=first.name)
    # The last layer has the name of a template's, so clients of a single model find the same output. If one
    # member is left, it is the `Rescaling` of that member.
    names = (
        [f"weight_{number}" for number in range(1, len(weighted_members) + 1)]
        if len(weighted_members) > 1
        else ["output"]
    )
    # In float32 even if members compute in 16 bits, like all output layers.
    parts = [
        keras.layers.Rescaling(weight, dtype="float32", name=name)(member(inputs))
        for name, (member, weight) in zip(names, weighted_members, strict=True)
    ]
    outputs = keras.layers.Add(dtype="float32", name="output")(parts) if len(parts) > 1 else parts[0]
    return keras.Model(inputs, outputs, name="ensemble")


def _check_difference(model: Any, members: Sequence[Any], weights: Floats, x: Array, y_pred: Array) -> float:
    """Return the largest difference between the ensemble's predictions and its members' weighted mean.

    Raises:
        EngineError: rounding does not explain the difference.
    """
    used = [(member, weight) for member, weight in zip(members, weights, strict=True) if weight > 0]
    expected = weighted_mean(
        [Predictor(member)(x) for member, _ in used], np.array([weight for _, weight in used])
    )
    difference = float(np.abs(y_pred - expected).max())
    limit = rounding_limit(model, expected)
    # `not … <=` instead of `>`: a difference that is NaN is an error too.
    if not difference <= limit:
        raise EngineError(
            f"the saved ensemble differs from its members' weighted mean by {difference:.3g}, "
            f"more than {limit:.3g}"
        )
    return difference
