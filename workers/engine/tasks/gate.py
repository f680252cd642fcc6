"""Runs the gate task: evaluates a challenger and the champion on the same test data in a new process."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jobs.contracts.features import Features
from jobs.contracts.gates import Slice
from jobs.contracts.measures import TEST_METRICS
from jobs.contracts.search import Direction
from jobs.contracts.signature import Signature
from jobs.kinds.gate.payload import GateTask
from workers.engine.arrays import Array
from workers.engine.data.dataset import Dataset, UploadedColumns, equal_to, load_dataset
from workers.engine.data.rows import Rows
from workers.engine.data.store import file_digest
from workers.engine.errors import BadData, BadModel
from workers.engine.evaluation.evaluate import evaluate, scores
from workers.engine.evaluation.gate_metrics import estimate, metric_function
from workers.engine.evaluation.gate_outcome import ChallengerMetric, GateOutcome, State, state_of
from workers.engine.evaluation.gates import (
    baseline_gate,
    finite_gate,
    floor_gate,
    latency_gate,
    metric_gate,
    slice_gate,
)
from workers.engine.evaluation.signature_gate import signature_gate
from workers.engine.evaluation.weighting import Weights, of_rows
from workers.engine.models.build import signature_of
from workers.engine.models.own_code import cause_of
from workers.engine.models.predict import Predictor
from workers.engine.phases import announced_to
from workers.engine.report import Report, finite_or_none
from workers.engine.tasks.latency import BATCH_SIZES, hardware, measure_latency
from workers.engine.tasks.register import features_for, load_checked, loading_with, predict_sample, sample_for
from workers.engine.tasks.steps import Steps
from workers.engine.tasks.tolerance import rounding_limit

AFTER_LOADING = ("signature", "metric", "better_than_baseline", "finite", "batch_invariance", "latency")
"""Gates that need the loaded model, in the order in which pages show them."""
LOADS = "the file loads without running code that it brings along, or with its registered code in a sandbox"
SAFELY = "in a new process, in safe mode"
SANDBOXED = "in a new process in a sandbox, with the code of its version"
INVARIANCE_ROWS = 3
INVARIANCE_BATCH = 8


@dataclass
class GateInputs:
    """The challenger and its data.

    Attributes:
        task: the task.
        model: the challenger.
        dataset: the data it was trained on; None if it is unknown or the model does not take its rows.
        sample: rows to predict, for each input.
    """

    task: GateTask
    model: Any
    dataset: Dataset | None
    sample: Sequence[Rows]

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
    digest = GateOutcome(
        "digest",
        state_of(same),
        detail=f"sha256 {'is' if same else 'is not'} the registered one",
        rule="the file has the digest with which the version was registered",
    )
    code = _code_in(task, task.challenger_code)
    loads = GateOutcome("loads", "passed", detail=SAFELY if code is None else SANDBOXED, rule=LOADS)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(loading_with(code))
            model = load_checked(path, Path(task.folder))
            features = features_for(model, path)
        except BadModel as error:
            names = [*AFTER_LOADING, *task.rules.own_gates()]
            skipped = [
                GateOutcome(name, "not_evaluated", detail="the model cannot be loaded") for name in names
            ]
            failed = replace(loads, state="failed", detail=str(error))
            return _result([failed, digest, *skipped], {}, 0)
        return _gates(task, report, steps, model, features, [loads, digest])


def _gates(
    task: GateTask,
    report: Report,
    steps: Steps,
    model: Any,
    features: Features | None,
    gates: list[GateOutcome],
) -> dict[str, Any]:
    """Evaluate the gates that need the loaded model, after those that are known."""
    steps.begin("comparing on test data")
    with announced_to(report.phase):
        inputs = _prepare(task, model, features)
    champion = Signature.model_validate(task.champion_signature) if task.champion_signature else None
    gates.append(signature_gate(signature_of(model, features), champion))
    with announced_to(report.phase):
        compared, metrics, outputs = _on_test_data(inputs)
    gates += [*compared, finite_gate(outputs)]

    steps.begin("measuring batch invariance and latency")
    gates += [_batch_invariance(inputs), _latency(inputs)]
    steps.done()
    return _result(gates, metrics, 0 if inputs.dataset is None else len(inputs.dataset.parts.test))


def _code_in(task: GateTask, folder: str) -> Path | None:
    """Return the folder of the code of one of the models; None if its file needs none."""
    return Path(task.code.folder) / folder if folder and task.code is not None else None


def _result(gates: list[GateOutcome], metrics: dict[str, Any], test_rows: int) -> dict[str, Any]:
    return {"gates": [gate.to_json() for gate in gates], "metrics": metrics, "test_rows": test_rows}


def _prepare(task: GateTask, model: Any, features: Features | None) -> GateInputs:
    if task.dataset is not None and task.spec is not None:
        dataset = load_dataset(task.dataset, task.spec.required_data, task.spec.texts, task.in_memory_bytes)
        # A model that was not trained here may take other inputs than the rows of its data set.
        with contextlib.suppress(BadData):
            # As in serving, by the pipeline in the file.
            x = dataset.rows_for(features, dataset.parts.test)
            inputs = GateInputs(task, model, dataset, [x])
            if inputs.predicts_rows and tuple(model.inputs[0].shape[1:]) == x.shape[1:]:
                return inputs
    return GateInputs(task, model, None, sample_for(model, task.dataset, features))


def _on_test_data(inputs: GateInputs) -> tuple[list[GateOutcome], dict[str, Any], list[Array]]:
    """Return the results of the gates that need test data, the metrics and the predictions."""
    dataset, rules = inputs.dataset, inputs.task.rules
    if dataset is None:
        why = "this version has no test data"
        names = ["metric", "better_than_baseline", *rules.own_gates()]
        gates = [GateOutcome(name, "not_evaluated", detail=why) for name in names]
        return gates, {}, predict_sample(inputs.model, [rows[:] for rows in inputs.sample])
    test = dataset.parts.test
    y_pred = Predictor(inputs.model)(inputs.sample[0])
    metrics = {"challenger": _scores(dataset, y_pred)}
    champion: Array | None = None
    refusal = "there is no champion"
    if inputs.task.champion is not None:
        try:
            path, task = Path(inputs.task.champion), inputs.task
            with _loading_champion(task):
                model = load_checked(path, Path(task.folder))
                champion = Predictor(model)(dataset.rows_for(features_for(model, path), test))
            metrics["champion"] = _scores(dataset, champion)
        # An older champion may take other inputs than the challenger's data; that must not fail the gates.
        except (BadModel, BadData, ValueError, TypeError, IndexError) as error:
            champion = None
            refusal = f"the champion cannot be evaluated on these rows: {str(error)[:300]}"
    outcomes = _TestDataGates(inputs, dataset, y_pred, champion, refusal).outcomes()
    return outcomes, metrics, [y_pred]


@contextlib.contextmanager
def _loading_champion(task: GateTask) -> Iterator[None]:
    """Let the champion's file be loaded with its own code.

    The challenger's code stays in use: two versions of one model have the same names.
    """
    code = _code_in(task, task.champion_code)
    if code is None:
        yield
        return
    with loading_with(code):
        try:
            yield
        except (BadModel, BadData):
            raise
        # The champion's code must not fail the gates of the challenger.
        except (Exception, SystemExit) as error:
            raise BadModel(f"its code failed: {cause_of(error)}") from error


class _TestDataGates:
    """The gates that compare predictions for the test rows."""

    def __init__(
        self, inputs: GateInputs, dataset: Dataset, y_pred: Array, champion: Array | None, refusal: str
    ) -> None:
        self._task, self._dataset = inputs.task, dataset
        self._y, self._ours, self._champion = dataset.y[dataset.parts.test], y_pred, champion
        self._refusal = refusal
        self._weights = dataset.weights_of(dataset.parts.test)
        self._columns = UploadedColumns(inputs.task.dataset if inputs.task.rules.slices else None)
        self._metric, self._direction = inputs.task.rules.metric_for(dataset.task, inputs.task.objective)

    def outcomes(self) -> list[GateOutcome]:
        """Return the outcomes in the order in which pages show them."""
        dataset, rules = self._dataset, self._task.rules
        unknown = {problem.pointer: problem.message for problem in rules.problems(dataset.task)}
        if "/metric" in unknown:
            names = ("metric", "better_than_baseline")
            found = [GateOutcome(name, "not_evaluated", detail=unknown["/metric"]) for name in names]
        else:
            train = dataset.parts.train
            before = dataset.weights_of(train)
            weights = None if before is None or self._weights is None else (before, self._weights)
            baseline = baseline_gate(
                self._metric, dataset.task, dataset.y[train], self._y, self._ours, weights
            )
            found = [self._against_champion(), baseline]
        for i, floor in enumerate(rules.floors):
            if (why := unknown.get(f"/floors/{i}/metric")) is not None:
                found.append(GateOutcome(floor.gate, "not_evaluated", detail=why))
                continue
            found.append(floor_gate(floor, self._measured(floor.metric, TEST_METRICS[floor.metric][1])))
        for i, slice_rule in enumerate(rules.slices):
            why = unknown.get(f"/slices/{i}/metric" if slice_rule.metric else "/metric")
            found.append(
                self._on_slice(slice_rule)
                if why is None
                else GateOutcome(slice_rule.gate, "not_evaluated", detail=why)
            )
        return found

    def _measured(self, metric: str, direction: Direction, inside: Array | None = None) -> ChallengerMetric:
        """Return the challenger's metric on the test rows with the given numbers among them, or on all."""
        y, ours, weights = self._of_rows(self._ours, inside)
        value = estimate(metric, self._dataset.task, y, ours, weights=weights)
        column = "" if self._weights is None else self._weights.column
        return ChallengerMetric(metric, direction, value, len(y), column)

    def _of_champion(self, metric: str, champion: Array, inside: Array | None = None) -> float:
        """Return the champion's metric on the same rows; see `_measured`."""
        return metric_function(metric, self._dataset.task)(*self._of_rows(champion, inside))

    def _of_rows(self, predictions: Array, inside: Array | None) -> tuple[Array, Array, Weights]:
        weights = None if self._weights is None else self._weights.values
        if inside is None:
            return self._y, predictions, weights
        return self._y[inside], predictions[inside], of_rows(weights, inside)

    def _against_champion(self) -> GateOutcome:
        name = self._metric
        measured = self._measured(name, self._direction)
        if self._champion is None:
            state: State = "skipped" if self._task.champion is None else "not_evaluated"
            rule = f"{name} on the test rows{measured.weighting} is compared with the champion's"
            return measured.outcome("metric", state, detail=self._refusal, rule=rule)
        theirs = self._of_champion(name, self._champion)
        return metric_gate(measured, theirs, self._task.rules.tolerance)

    def _on_slice(self, slice_rule: Slice) -> GateOutcome:
        dataset, metric = self._dataset, slice_rule.metric or self._metric
        try:
            values = self._columns.values(slice_rule.column)
        except BadData as error:
            return GateOutcome(slice_rule.gate, "not_evaluated", metric=metric, detail=str(error))
        inside = np.flatnonzero(equal_to(values[dataset.parts.test], slice_rule.value))
        rows = len(inside)
        if rows < slice_rule.min_rows:
            condition = f"{slice_rule.column} = {slice_rule.value}"
            detail = f"only {rows:,} test rows have {condition}; {slice_rule.min_rows:,} are needed"
            return GateOutcome(slice_rule.gate, "not_evaluated", metric=metric, rows=rows, detail=detail)
        if self._weights is not None and not self._weights.values[inside].any():
            detail = f"all {rows:,} rows have weight 0 in {self._weights.column}"
            return GateOutcome(slice_rule.gate, "not_evaluated", metric=metric, rows=rows, detail=detail)
        theirs = None if self._champion is None else self._of_champion(metric, self._champion, inside)
        measured = self._measured(metric, TEST_METRICS[metric][1], inside)
        return slice_gate(slice_rule, measured, theirs, self._task.rules.tolerance)


def _scores(dataset: Dataset, y_pred: Array) -> dict[str, float | None]:
    test = dataset.parts.test
    return scores(evaluate(dataset.task, dataset.y[test], y_pred, weights=dataset.weights_of(test)))


def _batch_invariance(inputs: GateInputs) -> GateOutcome:
    """Compare predictions for a few rows with those for the same rows in a larger batch.

    Servers gather requests into batches, so a prediction must not depend on the other rows of its batch.
    """
    name = "batch_invariance"
    if not inputs.predicts_rows:
        return GateOutcome(
            name, "not_evaluated", detail="only models with one input and one output are batched"
        )
    rows = inputs.sample[0][:INVARIANCE_ROWS]
    predict = Predictor(inputs.model)
    alone = predict.batch(rows)
    if len(alone) != len(rows):
        return GateOutcome(name, "failed", detail=f"{len(rows)} rows returned {len(alone)} predictions")
    difference = float(np.abs(alone - predict.padded(rows, INVARIANCE_BATCH)).max())
    limit = rounding_limit(inputs.model, alone)
    detail = f"{len(rows)} rows compared with the same rows in a batch of {INVARIANCE_BATCH}"
    # Both are NaN or infinite if a prediction is.
    value, allowed = finite_or_none(difference), finite_or_none(limit)
    rule = "a prediction does not depend on the other rows of its batch, except for rounding"
    return GateOutcome(name, state_of(difference <= limit), value, allowed, detail=detail, rule=rule)


def _latency(inputs: GateInputs) -> GateOutcome:
    """Measure the latency of one row and compare it with the ceiling, if there is one."""
    if not inputs.predicts_rows:
        return GateOutcome(
            "latency", "not_evaluated", detail="only models with one input and one output are timed"
        )
    found = measure_latency(Predictor(inputs.model), inputs.sample[0][: max(BATCH_SIZES)])
    detail = ", ".join(f"batch {size}: p50 {t.p50_ms} ms, p95 {t.p95_ms} ms" for size, t in found.items())
    detail = f"{detail} on {hardware(inputs.task.threads)}"
    return latency_gate(found["1"].p95_ms, inputs.task.rules.latency_p95_ms, detail)
