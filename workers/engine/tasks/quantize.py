"""Runs the quantize task: quantizes a model and compares both in size, accuracy and latency."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np

from jobs.kinds.quantize.payload import QuantizeTask
from jobs.messages.reports.evaluation import EvaluationReport
from jobs.messages.reports.quantization import (
    Agreement,
    BytesBeforeAfter,
    QuantizationReport,
    QuantizedBytes,
    Which,
)
from jobs.spec.exports import STORED
from jobs.spec.sections.data import Task
from jobs.spec.sections.measures import primary_metric
from workers.engine.arrays import Array
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.rows import selected
from workers.engine.evaluation.classification import predicted_classes
from workers.engine.evaluation.evaluate import evaluate, scores
from workers.engine.evaluation.regression import columns
from workers.engine.exports.source import ComparedLayers, ExportSource
from workers.engine.exports.writing import write_model
from workers.engine.models.build import signature_of
from workers.engine.models.files import save_model
from workers.engine.models.own_code.in_use import using_code
from workers.engine.models.predict import Predictor
from workers.engine.phases import announced_to
from workers.engine.report import Report
from workers.engine.tasks.artifacts import summary_of, write_json, write_test_predictions
from workers.engine.tasks.latency import BATCH_SIZES, hardware, measure_latency
from workers.engine.tasks.steps import Steps
from workers.features.files import read_features


@dataclass(frozen=True)
class EvaluatedModel:
    """A model with its predictions for the test rows and their evaluation.

    Attributes:
        model: the model.
        predict: its compiled function.
        y_pred: its predictions for the test rows, (rows, outputs).
        evaluation: their comparison with the targets.
    """

    model: Any
    predict: Predictor
    y_pred: Array
    evaluation: EvaluationReport

    @classmethod
    def evaluate(cls, model: Any, dataset: Dataset, seed: int) -> Self:
        """Predict and evaluate the test rows with a model; `seed` is for the bootstrap."""
        predict, test = Predictor(model), dataset.parts.test
        y_pred = predict(selected(dataset.x, test))
        labels = dataset.profile.class_labels
        y, weights = dataset.y[test], dataset.weights_of(test)
        return cls(model, predict, y_pred, evaluate(dataset.task, y, y_pred, labels, seed, weights))


def run(task: QuantizeTask, report: Report) -> dict[str, Any]:
    """Quantize and save a model, load it, and compare it with the original on the same test rows.

    Returns:
        The job's result: both models' metrics, sizes, agreement and latency.

    Raises:
        NotQuantizable: no int8 version predicts the same as this model after saving.
        BadData, BadSpec: the data set cannot be read as the spec requires.
    """
    with using_code(task.code, Path(task.folder)):
        return _run(task, report)


def _run(task: QuantizeTask, report: Report) -> dict[str, Any]:
    steps = Steps(report, 4)
    folder, seed = Path(task.folder), task.spec.required_data.split.seed
    mode = task.quantize.format
    original_path, path = Path(task.model), folder / mode.file_name()
    with announced_to(report.phase):
        # A fine-tuned version keeps the pipeline of the version that it started from.
        features = read_features(original_path) if task.spec.model.weights_digest is not None else None
        data = task.spec.required_data
        dataset = load_dataset(task.dataset, data, task.spec.texts, task.in_memory_bytes, features)

    steps.begin(f"quantizing to {mode.label}")
    sample = dataset.x[dataset.parts.train[: mode.checked_rows]]
    source = ExportSource.of_file(original_path, folder, sample)
    quantized = write_model(mode, source, path, task.quantize.format_options())

    steps.begin("comparing both models on test data")
    with announced_to(report.phase):
        models = (source.model, quantized.model)
        before, after = (EvaluatedModel.evaluate(model, dataset, seed) for model in models)

    steps.begin("measuring latency")
    comparison = compare(task, dataset, before, after, quantized.layers)
    for code, message in quantization_warnings(comparison):
        report.warning(code, message)

    steps.begin("writing the report")
    report.artifact("model", path.name, name=path.name)
    write_json(report, "report", "quantization.json", comparison)
    write_json(report, "evaluation", "evaluation.json", after.evaluation)
    write_json(report, "summary", "summary.json", summary_of(after.model))
    test, labels = dataset.parts.test, dataset.profile.class_labels
    write_test_predictions(report, dataset.task, test, dataset.y[test], after.y_pred, labels)
    steps.done()
    return _result(dataset, comparison, before, after)


def compare(
    task: QuantizeTask,
    dataset: Dataset,
    before: EvaluatedModel,
    after: EvaluatedModel,
    layers: ComparedLayers,
) -> QuantizationReport:
    """Measure both models' latency and return the comparison.

    Args:
        task: the task.
        dataset: the data set with the test rows.
        before: the original model.
        after: the quantized model.
        layers: quantized and skipped layers.
    """
    models: dict[Which, EvaluatedModel] = {"original": before, "quantized": after}
    test = dataset.parts.test
    original_path = Path(task.model)
    quantized_path = Path(task.folder) / task.quantize.format.file_name()
    return QuantizationReport(
        mode=task.quantize.mode,
        task=dataset.task,
        test_rows=len(test),
        bytes=sizes(before.model, after.model, original_path, quantized_path),
        metrics={name: model.evaluation.metrics for name, model in models.items()},
        weighted_by=after.evaluation.weighted_by,
        agreement=agreement(dataset.task, dataset.y[test], before.y_pred, after.y_pred),
        latency={
            name: measure_latency(model.predict, dataset.x[test[: max(BATCH_SIZES)]])
            for name, model in models.items()
        },
        hardware=hardware(task.threads),
        platform=jax.default_backend(),
        layers=layers.quantized,
        skipped=layers.skipped,
    )


def _result(
    dataset: Dataset, comparison: QuantizationReport, before: EvaluatedModel, after: EvaluatedModel
) -> dict[str, Any]:
    """Return the job's result."""
    return {
        "metrics": {"test": scores(after.evaluation)},
        "original": {"test": scores(before.evaluation)},
        **comparison.model_dump(mode="json", include={"bytes", "agreement", "latency", "hardware"}),
        "quantized_layers": len(comparison.layers),
        "skipped_layers": len(comparison.skipped),
        "signature": signature_of(after.model, dataset.features).model_dump(mode="json"),
        "class_labels": list(dataset.profile.class_labels),
        "parameters": int(before.model.count_params()),
        "test_rows": comparison.test_rows,
    }


def sizes(original: Any, quantized: Any, original_path: Path, quantized_path: Path) -> QuantizedBytes:
    """Return the sizes before and after quantization in bytes.

    Args:
        original: the model before quantization.
        quantized: the model after it.
        original_path: the original's file.
        quantized_path: the quantized model's file.
    """
    # A trained file may also contain the optimizer's state. For a fair comparison the original is saved again
    # without it.
    bare = quantized_path.with_name(STORED.file_name("without-optimizer"))
    save_model(original, bare, read_features(original_path))
    before = bare.stat().st_size
    bare.unlink()
    after = quantized_path.stat().st_size
    weights = summary_of(original).bytes, summary_of(quantized).bytes
    return QuantizedBytes(
        file=BytesBeforeAfter(before=before, after=after, ratio=after / before),
        weights=BytesBeforeAfter(before=weights[0], after=weights[1], ratio=weights[1] / max(weights[0], 1)),
        stored=original_path.stat().st_size,
    )


def agreement(task: Task, y_true: Array, original: Array, quantized: Array) -> Agreement:
    """Compare the predictions of two models for the same rows; for labels, the share counts all labels.

    Args:
        task: the prediction task.
        y_true: true values, (rows, …).
        original: the original model's predictions, (rows, …).
        quantized: the quantized model's predictions, (rows, …).
    """
    if task == "regression":
        # A constant target has no standard deviation: its differences stay in their own unit.
        scale = columns(y_true).std(axis=0)
        gap = np.abs(columns(original) - columns(quantized)) / np.where(scale > 0, scale, 1.0)
        return Agreement(max_difference=float(gap.max()), mean_difference=float(gap.mean()))
    if task == "multilabel":
        return Agreement(share=float(np.mean((original > 0.5) == (quantized > 0.5))))
    return Agreement(share=float(np.mean(predicted_classes(original) == predicted_classes(quantized))))


def quantization_warnings(comparison: QuantizationReport) -> list[tuple[str, str]]:
    """Return warnings about the quantized model as (code, message) pairs."""
    warnings = []
    size = comparison.bytes.file
    if size.after >= size.before:
        message = (
            f"the file is not smaller: {size.before:,} bytes before, {size.after:,} after. Keep the "
            "original; quantization pays for larger layers."
        )
        warnings.append(("quantized_not_smaller", message))
    metric, direction = primary_metric(comparison.task)
    before = comparison.metrics["original"][metric].value
    after = comparison.metrics["quantized"][metric].value
    # A metric is None if a prediction is NaN or infinite. Without the original's there is nothing to compare.
    if after is None:
        message = (
            f"the quantized model's test {metric} is undefined, because it predicts values that are not "
            "finite. Keep the original."
        )
        warnings.append(("quantized_less_accurate", message))
    elif before is not None and is_worse(direction, before, after):
        message = (
            f"the quantized model is worse: test {metric} changed from {before:.4g} to {after:.4g}. Keep "
            "the original, or accept the loss if size or speed matters more."
        )
        warnings.append(("quantized_less_accurate", message))
    return warnings


def is_worse(direction: str, before: float, after: float) -> bool:
    """Return whether a metric is worse by more than 0.01 (accuracy), or by more than 1 % (error)."""
    return after < before - 0.01 if direction == "max" else after > before * 1.01
