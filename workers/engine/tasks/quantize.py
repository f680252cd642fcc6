"""Makes an int8 form of a trained model and sets it beside the original: size, answers, speed, layers."""

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
class Side:
    """One of the two models, and what became of the test rows in it."""

    model: Any
    predict: Predictor
    y_pred: Array
    evaluation: dict[str, Any]

    @classmethod
    def of(cls, model: Any, dataset: Dataset, seed: int) -> Self:
        """Let a model answer the test rows; `seed` is the bootstrap's."""
        predict, test = Predictor(model), dataset.parts.test
        y_pred = predict(dataset.x[test])
        labels = dataset.profile.class_labels
        return cls(model, predict, y_pred, evaluate(dataset.task, dataset.y[test], y_pred, labels, seed))


def run(task: QuantizeTask, report: Report) -> dict[str, Any]:
    """Quantize, save, load again, compare with the original on the same test rows.

    Raises:
        NotQuantizable: no int8 form of this model survives saving.
        BadData, BadSpec: the data set cannot be read as the spec says.
    """
    steps = Steps(report, 4)
    folder, source, seed = Path(task.folder), Path(task.model), task.spec.data.split.seed
    dataset = load_dataset(task.dataset, task.spec.data)

    steps.begin("quantizing to int8")
    original = load_model(source, folder)
    quantized = quantize_file(source, folder / FILE, dataset.x[dataset.parts.train[:CHECKED_ROWS]])
    layers = compare_layers(original, quantized)

    steps.begin("comparing both on test data")
    before, after = (Side.of(model, dataset, seed) for model in (original, quantized))

    steps.begin("measuring latency")
    found = side_by_side(task, dataset, before, after, layers)
    for code, message in warnings(found):
        report.warning(code, message)

    steps.begin("writing the report")
    _hand_in(report, dataset, found, after)
    steps.done()
    return _result(dataset, found, before, after)


def side_by_side(
    task: QuantizeTask,
    dataset: Dataset,
    before: Side,
    after: Side,
    layers: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> dict[str, Any]:
    """Measure both models' latency and put all that is known of the two into one JSON object.

    Args:
        task: what was to be quantized, and how.
        dataset: whose test rows both answered.
        before: the original.
        after: its int8 form.
        layers: those quantized and those skipped, as `compare_layers` gives them.
    """
    sides, test = {"original": before, "quantized": after}, dataset.parts.test
    quantized_layers, skipped_layers = layers
    return {
        "mode": task.quantize.mode,
        "task": dataset.task,
        "test_rows": len(test),
        "bytes": sizes(before.model, after.model, Path(task.model), Path(task.folder)),
        "metrics": {name: side.evaluation["metrics"] for name, side in sides.items()},
        "agreement": agreement(dataset.task, dataset.y[test], before.y_pred, after.y_pred),
        "latency": {name: measure_latency(side.predict, dataset.x[test]) for name, side in sides.items()},
        "hardware": hardware(task.threads),
        "layers": quantized_layers,
        "skipped": skipped_layers,
    }


def _hand_in(report: Report, dataset: Dataset, found: dict[str, Any], after: Side) -> None:
    """Leave behind the int8 model with its evaluation, and the comparison."""
    report.artifact("model", FILE, name=FILE)
    write_json(report, "report", "quantization.json", found)
    write_json(report, "evaluation", "evaluation.json", after.evaluation)
    write_json(report, "summary", "summary.json", summary_of(after.model))
    test, labels = dataset.parts.test, dataset.profile.class_labels
    write_test_predictions(report, dataset.task, test, dataset.y[test], after.y_pred, labels)


def _result(dataset: Dataset, found: dict[str, Any], before: Side, after: Side) -> dict[str, Any]:
    """Return what the job keeps in its row."""
    return {
        "metrics": {"test": scores(after.evaluation)},
        "original": {"test": scores(before.evaluation)},
        "bytes": found["bytes"],
        "agreement": found["agreement"],
        "latency": found["latency"],
        "hardware": found["hardware"],
        "quantized_layers": len(found["layers"]),
        "skipped_layers": len(found["skipped"]),
        "signature": signature_of(after.model).model_dump(mode="json"),
        "class_labels": list(dataset.profile.class_labels),
        "parameters": int(before.model.count_params()),
        "test_rows": found["test_rows"],
    }


def sizes(original: Any, quantized: Any, source: Path, folder: Path) -> dict[str, Any]:
    """Return bytes before and after, of files and of weights in memory.

    A trained file also holds the optimizer's state; for a fair comparison the original is measured
    as saved again without it. `stored` is the file as it was given.
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
    """Say how alike the answers of two models are on the same rows.

    Returns:
        For classes `share`, of rows with the same answer; for regression `max_difference` and
        `mean_difference`, absolute, in standard deviations of the target.
    """
    if task == "regression":
        scale = columns(y_true).std(axis=0)
        gap = np.abs(columns(original) - columns(quantized)) / np.where(scale > 0, scale, 1.0)
        return {"max_difference": float(gap.max()), "mean_difference": float(gap.mean())}
    if task == "multilabel":
        return {"share": float(np.mean((original > 0.5) == (quantized > 0.5)))}
    return {"share": float(np.mean(predicted_classes(original) == predicted_classes(quantized)))}


def warnings(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what speaks against the quantized form: (code, sentence) each."""
    said = []
    size = found["bytes"]["file"]
    if size["after"] >= size["before"]:
        message = f"the file did not get smaller: {size['before']:,} bytes before, {size['after']:,} after"
        said.append(("quantized_not_smaller", message))
    metric, direction = primary_metric(found["task"])
    before, after = (found["metrics"][name][metric]["value"] for name in ("original", "quantized"))
    if None in (before, after) or worsened(direction, before, after):
        message = (
            f"test {metric} went from {before:.4g} to {after:.4g}"
            if after is not None
            else (f"the quantized model's test {metric} is undefined")
        )
        said.append(("quantized_less_accurate", message))
    return said


def worsened(direction: str, before: float, after: float) -> bool:
    """Say whether a metric lost more than 0.01 (of a share), or 1 % (of an error)."""
    return after < before - 0.01 if direction == "max" else after > before * 1.01
