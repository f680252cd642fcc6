"""Runs the gate task: evaluates a challenger and the champion on the same test data in a new process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobs.contracts.signature import Signature
from jobs.kinds.gate.payload import GateTask
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.store import file_digest
from workers.engine.data.table import Array
from workers.engine.evaluation.evaluate import evaluate, primary_metric, scores
from workers.engine.evaluation.gates import (
    GateResult,
    baseline_gate,
    finite_gate,
    metric_gate,
    signature_gate,
    state_of,
)
from workers.engine.models.build import signature_of
from workers.engine.models.predict import Predictor
from workers.engine.models.untrusted import BadModel
from workers.engine.report import Report
from workers.engine.tasks.latency import hardware, measure_latency
from workers.engine.tasks.register import load_checked, predict_sample, sample_for
from workers.engine.tasks.steps import Steps

AFTER_LOADING = ("signature", "metric", "better_than_baseline", "finite", "batch_invariance", "latency")
INVARIANCE_ROWS = 3
INVARIANCE_BATCH = 8
TOLERANCE = 1e-5
TOLERANCE_HALF = 1e-2
"""For models that compute in 16 bits, whose rounding depends on how each batch size was compiled."""


@dataclass
class GateInputs:
    """The challenger and its data.

    Attributes:
        task: the task.
        model: the challenger.
        dataset: the data it was trained on, if known and usable.
        sample: rows to predict, one array per input.
    """

    task: GateTask
    model: Any
    dataset: Dataset | None
    sample: list[Array]

    @property
    def predicts_rows(self) -> bool:
        """Whether the model has one input and one output, like all models trained here."""
        return len(self.model.inputs) == 1 and len(self.model.outputs) == 1


def run(task: GateTask, report: Report) -> dict[str, Any]:
    """Evaluate all gates. A gate that cannot be evaluated states the reason.

    Returns:
        `gates` in order, `metrics` of challenger and champion on the test rows, and `test_rows`.

    Raises:
        BadData, BadSpec: the data set cannot be read as the spec requires.
    """
    steps = Steps(report, 3)
    steps.begin("verifying the file")
    path = Path(task.challenger)
    same = file_digest(path) == task.challenger_digest
    gates = [
        GateResult("digest", state_of(same), detail=f"sha256 {'is' if same else 'is not'} the registered one")
    ]
    try:
        model = load_checked(path, Path(task.folder))
    except BadModel as error:
        # the digest was checked first, but pages show the gates from `loads` on
        gates.insert(0, GateResult("loads", "failed", detail=str(error)))
        gates += [
            GateResult(name, "not_evaluated", detail="the model cannot be loaded") for name in AFTER_LOADING
        ]
        return _result(gates, {}, 0)
    gates.insert(0, GateResult("loads", "passed", detail="in a new process, in safe mode"))

    steps.begin("comparing on test data")
    inputs = _prepare(task, model)
    champion = Signature.model_validate(task.champion_signature) if task.champion_signature else None
    gates.append(signature_gate(signature_of(model), champion))
    compared, metrics, outputs = _on_test_data(inputs)
    gates += [*compared, finite_gate(outputs)]

    steps.begin("measuring batch invariance and latency")
    gates += [_batch_invariance(inputs), _latency(inputs)]
    steps.done()
    return _result(gates, metrics, 0 if inputs.dataset is None else len(inputs.dataset.parts.test))


def _result(gates: list[GateResult], metrics: dict[str, Any], test_rows: int) -> dict[str, Any]:
    return {"gates": [gate.to_json() for gate in gates], "metrics": metrics, "test_rows": test_rows}


def _prepare(task: GateTask, model: Any) -> GateInputs:
    sample = sample_for(model, task.dataset)
    if task.dataset is None or task.spec is None:
        return GateInputs(task, model, None, sample)
    dataset = load_dataset(task.dataset, task.spec.data)
    inputs = GateInputs(task, model, dataset, [dataset.x[dataset.parts.test]])
    if inputs.predicts_rows and tuple(model.inputs[0].shape[1:]) == dataset.x.shape[1:]:
        return inputs
    return GateInputs(task, model, None, sample)


def _on_test_data(inputs: GateInputs) -> tuple[list[GateResult], dict[str, Any], list[Array]]:
    """Return the results of the gates that need test data, the metrics and the predictions."""
    dataset = inputs.dataset
    if dataset is None:
        why = "this version has no test data"
        gates = [GateResult(name, "not_evaluated", detail=why) for name in ("metric", "better_than_baseline")]
        return gates, {}, predict_sample(inputs.model, inputs.sample)
    test, train = dataset.parts.test, dataset.parts.train
    y_pred = Predictor(inputs.model)(dataset.x[test])
    metrics = {"challenger": _scores(dataset, y_pred)}
    comparison = _against_champion(inputs, dataset, metrics)
    baseline = baseline_gate(dataset.task, dataset.y[train], dataset.y[test], y_pred, seed=0)
    return [comparison, baseline], metrics, [y_pred]


def _scores(dataset: Dataset, y_pred: Array) -> dict[str, float | None]:
    return scores(evaluate(dataset.task, dataset.y[dataset.parts.test], y_pred))


def _against_champion(inputs: GateInputs, dataset: Dataset, metrics: dict[str, Any]) -> GateResult:
    """Compare with the champion on the same rows; adds its scores to `metrics`."""
    name, _ = primary_metric(dataset.task)
    ours = metrics["challenger"][name]
    if inputs.task.champion is None:
        return GateResult("metric", "skipped", ours, detail="there is no champion")
    try:
        champion = load_checked(Path(inputs.task.champion), Path(inputs.task.folder))
        y_pred = Predictor(champion)(dataset.x[dataset.parts.test])
        metrics["champion"] = _scores(dataset, y_pred)
    except (BadModel, ValueError, TypeError, IndexError) as error:
        detail = f"the champion cannot be evaluated on these rows: {str(error)[:300]}"
        return GateResult("metric", "not_evaluated", ours, detail=detail)
    return metric_gate(dataset.task, ours, metrics["champion"][name], inputs.task.delta)


def _batch_invariance(inputs: GateInputs) -> GateResult:
    """Compare predictions for a few rows with those for the same rows in a larger batch."""
    name = "batch_invariance"
    if not inputs.predicts_rows:
        return GateResult(
            name, "not_evaluated", detail="only models with one input and one output are batched"
        )
    rows = inputs.sample[0][:INVARIANCE_ROWS]
    predict = Predictor(inputs.model)
    alone = predict.batch(rows)
    if len(alone) != len(rows):
        return GateResult(name, "failed", detail=f"{len(rows)} rows returned {len(alone)} predictions")
    difference = float(np.abs(alone - predict.padded(rows, INVARIANCE_BATCH)).max())
    half = any("16" in str(layer.compute_dtype) for layer in inputs.model._flatten_layers())
    limit = (TOLERANCE_HALF if half else TOLERANCE) * max(1.0, float(np.abs(alone).max()))
    detail = f"{len(rows)} rows compared with the same rows in a batch of {INVARIANCE_BATCH}"
    value = difference if np.isfinite(difference) else None
    return GateResult(name, state_of(difference <= limit), value, limit, None, detail)


def _latency(inputs: GateInputs) -> GateResult:
    """Measure the latency of one row. There is no limit, so the gate always passes."""
    if not inputs.predicts_rows:
        return GateResult(
            "latency", "not_evaluated", detail="only models with one input and one output are timed"
        )
    found = measure_latency(Predictor(inputs.model), inputs.sample[0])
    detail = ", ".join(
        f"batch {size}: p50 {t['p50_ms']} ms, p95 {t['p95_ms']} ms" for size, t in found.items()
    )
    where = hardware(inputs.task.threads)
    return GateResult("latency", "passed", found["1"]["p95_ms"], None, None, f"{detail} on {where}")
