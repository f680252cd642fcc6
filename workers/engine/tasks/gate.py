"""The gate task: may this version take the champion's place? Judged in a clean process, on one test set."""

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
    Gate,
    baseline_gate,
    finite_gate,
    metric_gate,
    signature_gate,
    verdict,
)
from workers.engine.models.build import signature_of
from workers.engine.models.predict import Predictor
from workers.engine.models.untrusted import BadModel
from workers.engine.report import Report
from workers.engine.tasks.latency import hardware, measure_latency
from workers.engine.tasks.register import answers, load_checked, sample_for
from workers.engine.tasks.steps import Steps

AFTER_LOADING = ("signature", "metric", "better_than_baseline", "finite", "batch_invariance", "latency")
ALONE = 3
PADDED = 8
TOLERANCE = 1e-5
TOLERANCE_HALF = 1e-2
"""Where a model computes in 16 bits, its rounding depends on how a batch of that size was compiled."""


@dataclass
class Trial:
    """What the gates look at: the challenger and, where there is one, the data it was made from."""

    task: GateTask
    model: Any
    dataset: Dataset | None
    sample: list[Array]

    @property
    def predicts_rows(self) -> bool:
        """Say whether the model has one input and one output, as everything that we train."""
        return len(self.model.inputs) == 1 and len(self.model.outputs) == 1


def run(task: GateTask, report: Report) -> dict[str, Any]:
    """Evaluate every gate; one that cannot be evaluated says why.

    Returns:
        `gates` in order, `metrics` of challenger and champion on the test rows, `test_rows`.

    Raises:
        BadData, BadSpec: the data set cannot be read as the spec says.
    """
    steps = Steps(report, 3)
    steps.begin("verifying the file")
    path = Path(task.challenger)
    same = file_digest(path) == task.challenger_digest
    gates = [Gate("digest", verdict(same), detail=f"sha256 {'is' if same else 'is not'} the registered one")]
    try:
        model = load_checked(path, Path(task.folder))
    except BadModel as error:
        gates.insert(0, Gate("loads", "failed", detail=str(error)))
        gates += [Gate(name, "not_evaluated", detail="it does not load") for name in AFTER_LOADING]
        return _result(gates, {}, 0)
    gates.insert(0, Gate("loads", "passed", detail="in a clean process, in safe mode"))

    steps.begin("comparing on test data")
    trial = _prepare(task, model)
    champion = Signature.model_validate(task.champion_signature) if task.champion_signature else None
    gates.append(signature_gate(signature_of(model), champion))
    compared, metrics, outputs = _on_test_data(trial)
    gates += [*compared, finite_gate(outputs)]

    steps.begin("measuring")
    gates += [_batch_invariance(trial), _latency(trial)]
    steps.done()
    return _result(gates, metrics, 0 if trial.dataset is None else len(trial.dataset.parts.test))


def _result(gates: list[Gate], metrics: dict[str, Any], test_rows: int) -> dict[str, Any]:
    return {"gates": [gate.to_json() for gate in gates], "metrics": metrics, "test_rows": test_rows}


def _prepare(task: GateTask, model: Any) -> Trial:
    sample = sample_for(model, task.dataset)
    if task.dataset is None or task.spec is None:
        return Trial(task, model, None, sample)
    dataset = load_dataset(task.dataset, task.spec.data)
    trial = Trial(task, model, dataset, [dataset.x[dataset.parts.test]])
    if trial.predicts_rows and tuple(model.inputs[0].shape[1:]) == dataset.x.shape[1:]:
        return trial
    return Trial(task, model, None, sample)


def _on_test_data(trial: Trial) -> tuple[list[Gate], dict[str, Any], list[Array]]:
    """Return the gates that need test data, the metrics behind them, and the predictions made."""
    dataset = trial.dataset
    if dataset is None:
        why = "there are no test data that belong to this version"
        gates = [Gate(name, "not_evaluated", detail=why) for name in ("metric", "better_than_baseline")]
        return gates, {}, answers(trial.model, trial.sample)
    test, train = dataset.parts.test, dataset.parts.train
    y_pred = Predictor(trial.model)(dataset.x[test])
    metrics = {"challenger": _scores(dataset, y_pred)}
    comparison = _against_champion(trial, dataset, metrics)
    baseline = baseline_gate(dataset.task, dataset.y[train], dataset.y[test], y_pred, seed=0)
    return [comparison, baseline], metrics, [y_pred]


def _scores(dataset: Dataset, y_pred: Array) -> dict[str, float | None]:
    return scores(evaluate(dataset.task, dataset.y[dataset.parts.test], y_pred))


def _against_champion(trial: Trial, dataset: Dataset, metrics: dict[str, Any]) -> Gate:
    """Compare with the champion on the same rows; its scores are put into `metrics`."""
    name, _ = primary_metric(dataset.task)
    ours = metrics["challenger"][name]
    if trial.task.champion is None:
        return Gate("metric", "skipped", ours, detail="there is no champion")
    try:
        champion = load_checked(Path(trial.task.champion), Path(trial.task.folder))
        y_pred = Predictor(champion)(dataset.x[dataset.parts.test])
        metrics["champion"] = _scores(dataset, y_pred)
    except (BadModel, ValueError, TypeError, IndexError) as error:
        detail = f"the champion cannot be evaluated on these rows: {str(error)[:300]}"
        return Gate("metric", "not_evaluated", ours, detail=detail)
    return metric_gate(dataset.task, ours, metrics["champion"][name], trial.task.delta)


def _batch_invariance(trial: Trial) -> Gate:
    """Compare a few rows predicted alone with the same rows inside a larger batch."""
    name = "batch_invariance"
    if not trial.predicts_rows:
        return Gate(name, "not_evaluated", detail="only models with one input and one output are batched")
    rows = trial.sample[0][:ALONE]
    predict = Predictor(trial.model)
    alone = predict.batch(rows)
    if len(alone) != len(rows):
        return Gate(name, "failed", detail=f"{len(rows)} rows gave {len(alone)} predictions")
    difference = float(np.abs(alone - predict.padded(rows, PADDED)).max())
    half = any("16" in str(layer.compute_dtype) for layer in trial.model._flatten_layers())
    limit = (TOLERANCE_HALF if half else TOLERANCE) * max(1.0, float(np.abs(alone).max()))
    detail = f"{len(rows)} rows alone against the same in a batch of {PADDED}"
    value = difference if np.isfinite(difference) else None
    return Gate(name, verdict(difference <= limit), value, limit, None, detail)


def _latency(trial: Trial) -> Gate:
    """Record how long one row takes; there is no limit to hold it against."""
    if not trial.predicts_rows:
        return Gate("latency", "not_evaluated", detail="only models with one input and one output are timed")
    found = measure_latency(Predictor(trial.model), trial.sample[0])
    detail = ", ".join(
        f"batch {size}: p50 {t['p50_ms']} ms, p95 {t['p95_ms']} ms" for size, t in found.items()
    )
    where = hardware(trial.task.threads)
    return Gate("latency", "passed", found["1"]["p95_ms"], None, None, f"{detail} on {where}")
