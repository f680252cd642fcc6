"""Runs the quantize task: quantizes a model to int8 and compares both in size, accuracy and latency."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from jobs.contracts.data import Task
from jobs.kinds.quantize.payload import QuantizeTask
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.table import Array
from workers.engine.evaluation.classification import predicted_classes
from workers.engine.evaluation.evaluate import evaluate, primary_metric, scores
from workers.engine.evaluation.regression import columns
from workers.engine.models.build import signature_of
from workers.engine.models.files import load_model, save_model
from workers.engine.models.int8 import compare_layers, quantize_file
from workers.engine.models.predict import Predictor
from workers.engine.report import Report
from workers.engine.tasks.artifacts import summary_of, write_json, write_test_predictions
from workers.engine.tasks.latency import hardware, measure_latency
from workers.engine.tasks.steps import Steps

CHECKED_ROWS = 64
FILE = "quantized.keras"


@dataclass(frozen=True)
class EvaluatedModel:
    """A model with its predictions for the test rows and their evaluation."""

    model: Any
    predict: Predictor
    y_pred: Array
    evaluation: dict[str, Any]

    @classmethod
    def evaluate(cls, model: Any, dataset: Dataset, seed: int) -> Self:
        """Predict and evaluate the test rows with a model; `seed` is for the bootstrap."""
        predict, test = Predictor(model), dataset.parts.test
        y_pred = predict(dataset.x[test])
        labels = dataset.profile.class_labels
        return cls(model, predict, y_pred, evaluate(dataset.task, dataset.y[test], y_pred, labels, seed))


def run(task: QuantizeTask, report: Report) -> dict[str, Any]:
    """Quantize and save a model, load it, and compare it with the original on the same test rows.

    Returns:
        The job's result: metrics, sizes, agreement and latency of both models.

    Raises:
        NotQuantizable: no int8 version of this model predicts the same after saving.
        BadData, BadSpec: the data set cannot be read as the spec requires.
    """
    steps = Steps(report, 4)
    folder, source, seed = Path(task.folder), Path(task.model), task.spec.data.split.seed
    dataset = load_dataset(task.dataset, task.spec.data)

    steps.begin("quantizing to int8")
    original = load_model(source, folder)
    quantized = quantize_file(source, folder / FILE, dataset.x[dataset.parts.train[:CHECKED_ROWS]])
    layers = compare_layers(original, quantized)

    steps.begin("comparing both models on test data")
    before, after = (EvaluatedModel.evaluate(model, dataset, seed) for model in (original, quantized))

    steps.begin("measuring latency")
    comparison = compare(task, dataset, before, after, layers)
    for code, message in quantization_warnings(comparison):
        report.warning(code, message)

    steps.begin("writing the report")
    _write_artifacts(report, dataset, comparison, after)
    steps.done()
    return _result(dataset, comparison, before, after)


def compare(
    task: QuantizeTask,
    dataset: Dataset,
    before: EvaluatedModel,
    after: EvaluatedModel,
    layers: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> dict[str, Any]:
    """Measure the latency of both models and return the comparison as a JSON object.

    Args:
        task: the task.
        dataset: the data set with the test rows.
        before: the original model.
        after: the quantized model.
        layers: quantized and skipped layers, from `compare_layers`.
    """
    models, test = {"original": before, "quantized": after}, dataset.parts.test
    quantized_layers, skipped_layers = layers
    return {
        "mode": task.quantize.mode,
        "task": dataset.task,
        "test_rows": len(test),
        "bytes": sizes(before.model, after.model, Path(task.model), Path(task.folder)),
        "metrics": {name: model.evaluation["metrics"] for name, model in models.items()},
        "agreement": agreement(dataset.task, dataset.y[test], before.y_pred, after.y_pred),
        "latency": {name: measure_latency(model.predict, dataset.x[test]) for name, model in models.items()},
        "hardware": hardware(task.threads),
        "layers": quantized_layers,
        "skipped": skipped_layers,
    }


def _write_artifacts(
    report: Report, dataset: Dataset, comparison: dict[str, Any], after: EvaluatedModel
) -> None:
    """Write the quantized model, its evaluation and the comparison."""
    report.artifact("model", FILE, name=FILE)
    write_json(report, "report", "quantization.json", comparison)
    write_json(report, "evaluation", "evaluation.json", after.evaluation)
    write_json(report, "summary", "summary.json", summary_of(after.model))
    test, labels = dataset.parts.test, dataset.profile.class_labels
    write_test_predictions(report, dataset.task, test, dataset.y[test], after.y_pred, labels)


def _result(
    dataset: Dataset, comparison: dict[str, Any], before: EvaluatedModel, after: EvaluatedModel
) -> dict[str, Any]:
    """Return the job's result."""
    return {
        "metrics": {"test": scores(after.evaluation)},
        "original": {"test": scores(before.evaluation)},
        "bytes": comparison["bytes"],
        "agreement": comparison["agreement"],
        "latency": comparison["latency"],
        "hardware": comparison["hardware"],
        "quantized_layers": len(comparison["layers"]),
        "skipped_layers": len(comparison["skipped"]),
        "signature": signature_of(after.model).model_dump(mode="json"),
        "class_labels": list(dataset.profile.class_labels),
        "parameters": int(before.model.count_params()),
        "test_rows": comparison["test_rows"],
    }


def sizes(original: Any, quantized: Any, source: Path, folder: Path) -> dict[str, Any]:
    """Return the sizes before and after quantization in bytes, of the files and of the weights in memory.

    A trained file also contains the optimizer's state. For a fair comparison the original is saved again
    without it; `stored` is the size of the file as it was given.
    """
    bare = folder / "without-optimizer.keras"
    save_model(original, bare)
    before = bare.stat().st_size
    bare.unlink()
    after = (folder / FILE).stat().st_size
    return {
        "file": {"before": before, "after": after, "ratio": after / before},
        "weights": {"before": summary_of(original)["bytes"], "after": summary_of(quantized)["bytes"]},
        "stored": source.stat().st_size,
    }


def agreement(task: Task, y_true: Array, original: Array, quantized: Array) -> dict[str, float]:
    """Compare the predictions of two models for the same rows.

    Returns:
        For classes, the `share` of rows with the same prediction; for regression, the absolute
        `max_difference` and `mean_difference` in standard deviations of the target.
    """
    if task == "regression":
        scale = columns(y_true).std(axis=0)
        gap = np.abs(columns(original) - columns(quantized)) / np.where(scale > 0, scale, 1.0)
        return {"max_difference": float(gap.max()), "mean_difference": float(gap.mean())}
    if task == "multilabel":
        return {"share": float(np.mean((original > 0.5) == (quantized > 0.5)))}
    return {"share": float(np.mean(predicted_classes(original) == predicted_classes(quantized)))}


def quantization_warnings(comparison: dict[str, Any]) -> list[tuple[str, str]]:
    """Return warnings about the quantized model as (code, message) pairs."""
    warnings = []
    size = comparison["bytes"]["file"]
    if size["after"] >= size["before"]:
        message = f"the file is not smaller: {size['before']:,} bytes before, {size['after']:,} after"
        warnings.append(("quantized_not_smaller", message))
    metric, direction = primary_metric(comparison["task"])
    before, after = (comparison["metrics"][name][metric]["value"] for name in ("original", "quantized"))
    if None in (before, after) or is_worse(direction, before, after):
        message = (
            f"test {metric} changed from {before:.4g} to {after:.4g}"
            if after is not None
            else (f"the quantized model's test {metric} is undefined")
        )
        warnings.append(("quantized_less_accurate", message))
    return warnings


def is_worse(direction: str, before: float, after: float) -> bool:
    """Return whether a metric is worse by more than 0.01 (accuracy), or by more than 1 % (error)."""
    return after < before - 0.01 if direction == "max" else after > before * 1.01
