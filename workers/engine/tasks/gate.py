"""Runs the gate task: evaluates a challenger and the champion on the same test data."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jobs.kinds.gate.payload import CHALLENGER, CHAMPION, GateTask
from jobs.spec.data.features import Features
from jobs.spec.gates import Slice
from jobs.spec.sections.measures import TEST_METRICS
from jobs.spec.sections.search import Direction
from jobs.spec.signature import Signature
from workers.engine.arrays import Array
from workers.engine.data.dataset import Dataset, UploadedColumns, equal_to, load_dataset
from workers.engine.data.rows import Reordered, Rows
from workers.engine.data.store import file_digest
from workers.engine.errors import BadData, BadModel
from workers.engine.evaluation.class_names import OtherClasses, in_order_of
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
from workers.engine.phases import announced_to
from workers.engine.report import Report, finite_or_none
from workers.engine.tasks.artifacts import write_json
from workers.engine.tasks.judged_models import JudgedModel, LoadedModel, SandboxedModel
from workers.engine.tasks.latency import BATCH_SIZES, hardware, measure_latency
from workers.engine.tasks.samples.known_rows import fits
from workers.engine.tasks.samples.trying import try_rows
from workers.engine.tasks.steps import Steps
from workers.model_process.client import ModelClient, ModelFailed
from workers.model_process.library_messages import plain_message

AFTER_LOADING = ("signature", "metric", "better_than_baseline", "finite", "batch_invariance", "latency")
"""Gates that need the loaded model, in the order in which pages show them."""
LOADS = "the file loads without running code that it brings along, or with its registered code in a sandbox"
SAFELY = "in a new process, in safe mode"
SANDBOXED = (
    "with the code of its version, in a sandbox without network; that process gets the features of the test "
    "rows in a random order, and returns predictions"
)
FROM_OUTSIDE = "measured from outside of its sandbox, with the transfer"
BY_POSITION = "the names of the champion's classes are unknown, so the order of these rows is assumed"
INVARIANCE_ROWS = 3
INVARIANCE_BATCH = 8

Clients = Mapping[str, ModelClient | BadModel]
"""By the name of a version that needs code: the connection to its process, or why there is none."""


@dataclass
class GateInputs:
    """The challenger and its data.

    Attributes:
        task: the task.
        model: the challenger.
        dataset: the data it was trained on; None if it is unknown or the model does not take its rows.
        sample: rows to predict, for each input.
        clients: the processes for versions that need code.
        report: receives the evaluation if the challenger needs code.
    """

    task: GateTask
    report: Report
    model: JudgedModel
    dataset: Dataset | None
    sample: Sequence[Rows]
    clients: Clients


def run(task: GateTask, report: Report) -> dict[str, Any]:
    """Evaluate all gates. A gate that cannot be evaluated states the reason.

    Versions that need code are executed by other processes, which get features and return predictions: what
    such code changes in its own process has no effect on the metrics.

    Returns:
        `gates` in order, `metrics` for challenger and champion on the test rows, and `test_rows`.

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
    with contextlib.ExitStack() as stack, announced_to(report.phase):
        clients = _connected(task, stack)
        loads = GateOutcome("loads", "passed", detail=_how(clients), rule=LOADS)
        try:
            model = _version(task, clients, CHALLENGER, path, task.challenger_signature)
        except BadModel as error:
            names = [*AFTER_LOADING, *task.rules.own_gates()]
            skipped = [
                GateOutcome(name, "not_evaluated", detail="the model cannot be loaded") for name in names
            ]
            failed = replace(loads, state="failed", detail=str(error))
            return _result([failed, digest, *skipped], {}, 0)
        return _gates(task, report, steps, model, clients, [loads, digest])


def _gates(
    task: GateTask,
    report: Report,
    steps: Steps,
    model: JudgedModel,
    clients: Clients,
    gates: list[GateOutcome],
) -> dict[str, Any]:
    """Evaluate the gates that need the loaded model, after those that are known."""
    steps.begin("comparing on test data")
    champion = Signature.model_validate(task.champion_signature) if task.champion_signature else None
    gates.append(signature_gate(model.signature, champion, task.challenger_classes, task.champion_classes))
    metrics: dict[str, Any] = {}
    test_rows = 0
    try:
        inputs = _prepare(task, report, model, clients)
        test_rows = 0 if inputs.dataset is None else len(inputs.dataset.parts.test)
        compared, metrics, outputs = _on_test_data(inputs)
        gates += [*compared, finite_gate(outputs)]
        steps.begin("measuring batch invariance and latency")
        gates.append(_batch_invariance(inputs))
        gates.append(_latency(inputs))
    except ModelFailed as error:
        finished = {gate.name for gate in gates}
        names = [name for name in (*AFTER_LOADING, *task.rules.own_gates()) if name not in finished]
        gates += [GateOutcome(name, "failed", detail=str(error)) for name in names]
    steps.done()
    return _result(gates, metrics, test_rows)


def _connected(task: GateTask, stack: contextlib.ExitStack) -> Clients:
    """Have the versions that need code loaded by their processes, at the same time."""
    clients: dict[str, ModelClient | BadModel] = {}
    for model in task.models:
        try:
            client = SandboxedModel.connect(model)
        except BadModel as error:
            clients[model.name] = error
        else:
            stack.callback(client.close)
            clients[model.name] = client
    return clients


def _how(clients: Clients) -> str:
    return SANDBOXED if CHALLENGER in clients else SAFELY


def _version(
    task: GateTask, clients: Clients, name: str, path: Path, registered: dict[str, Any]
) -> JudgedModel:
    """Return challenger or champion, loaded.

    Raises:
        BadModel: it cannot be loaded.
    """
    client = clients.get(name)
    if client is None:
        # A champion may have had another mesh, but neither may fit on one device.
        return LoadedModel(path, Path(task.folder), None if task.spec is None else task.spec.mesh)
    if isinstance(client, BadModel):
        raise client
    return SandboxedModel(client, path, registered)


def _result(gates: list[GateOutcome], metrics: dict[str, Any], test_rows: int) -> dict[str, Any]:
    return {"gates": [gate.to_json() for gate in gates], "metrics": metrics, "test_rows": test_rows}


def _prepare(task: GateTask, report: Report, model: JudgedModel, clients: Clients) -> GateInputs:
    """Return the rows on which a version is judged: from its data, or generated ones if it takes others.

    Raises:
        ModelFailed: its pipeline, which user code has written, asks for columns that its data lack; or it is
            in its own process and answers no rows.
    """
    if task.dataset is not None and task.spec is not None:
        dataset = load_dataset(task.dataset, task.spec.required_data, task.spec.texts, task.in_memory_bytes)
        try:
            # As in serving, by the pipeline in the file.
            x = dataset.rows_for(model.features, dataset.parts.test)
            if model.predicts_rows and fits(x.shape[1:], model.signature.inputs[0].shape):
                return GateInputs(task, report, model, dataset, [x], clients)
        # A model that was not trained here may take other inputs than the rows of its data set.
        except BadData as error:
            if model.is_sandboxed and model.features is not None:
                raise ModelFailed(f"its pipeline does not fit its data: {error}") from error
    # The validation has stored its rows: those of the sender, or some that the model answers.
    try:
        tried = try_rows(model.outputs, model.signature, task.dataset, model.features, task.sample)
    except BadModel as error:
        if not model.is_sandboxed:
            raise
        raise ModelFailed(str(error)) from error
    return GateInputs(task, report, model, None, tried.rows, clients)


def _on_test_data(inputs: GateInputs) -> tuple[list[GateOutcome], dict[str, Any], list[Array]]:
    """Return the results for the gates that need test data, the metrics and the predictions.

    Raises:
        ModelFailed: the challenger's process did not answer as it must.
    """
    dataset, rules = inputs.dataset, inputs.task.rules
    names = ["metric", "better_than_baseline", *rules.own_gates()]
    if dataset is None:
        why = "this version has no test data"
        gates = [GateOutcome(name, "not_evaluated", detail=why) for name in names]
        return gates, {}, inputs.model.outputs([rows[:] for rows in inputs.sample])
    _refuse_targets(inputs.model, dataset)
    order = _order(inputs.task, len(dataset.parts.test))
    y_pred = _predictions(inputs.model, inputs.sample[0], order)
    try:
        y_pred = in_order_of(dataset.profile.class_labels, inputs.task.challenger_classes, y_pred)
    except OtherClasses as error:
        why = f"this version cannot be evaluated on its test rows: {error}"
        return [GateOutcome(name, "failed", detail=why) for name in names], {}, [y_pred]
    try:
        metrics = {"challenger": _evaluated(inputs, dataset, y_pred)}
        champion: Array | None = None
        refusal = "there is no champion"
        if inputs.task.champion is not None:
            try:
                champion = _of_champion(inputs, dataset, order)
                metrics["champion"] = _scores(dataset, champion)
            # An older champion may take other inputs than these data; that must not fail the gates.
            except (BadModel, BadData, ModelFailed, ValueError, TypeError, IndexError) as error:
                champion = None
                refusal = f"the champion cannot be evaluated on these rows: {plain_message(error, limit=300)}"
        outcomes = _TestDataGates(inputs, dataset, y_pred, champion, refusal).outcomes()
    # A version without code has passed its validation on such rows.
    except (ValueError, TypeError, IndexError) as error:
        if not inputs.model.is_sandboxed:
            raise
        shape = list(y_pred.shape[1:])
        raise ModelFailed(f"its predictions of shape {shape} do not fit the targets: {error}") from error
    return outcomes, metrics, [y_pred]


def _order(task: GateTask, rows: int) -> Array | None:
    """Return the order in which the versions get the test rows; None for the data's order.

    It is the same for both, and user code does not know it: the data's order may follow the targets.
    """
    return np.random.default_rng().permutation(rows) if task.models else None


def _predictions(model: JudgedModel, x: Rows, order: Array | None) -> Array:
    """Return the predictions for all rows, which the model gets in another order."""
    if order is None:
        return model(x)
    reordered = model(Reordered(x, order))
    y_pred = np.empty_like(reordered)
    y_pred[order] = reordered
    return y_pred


def _refuse_targets(model: JudgedModel, dataset: Dataset) -> None:
    """Refuse a pipeline that takes the test rows' targets, since user code has written it.

    The data's windows may have earlier targets, but then the model must have the same windows.

    Raises:
        ModelFailed: it takes them.
    """
    target, features, data_features = dataset.profile.target, model.features, dataset.features
    if not model.is_sandboxed or features is None or target not in _columns(features):
        return
    if (
        data_features is None
        or data_features.window is None
        or data_features.window != features.window
        or target not in _columns(data_features)
    ):
        raise ModelFailed(f"its pipeline takes the target {target!r} as a feature")


def _columns(features: Features) -> list[str]:
    return [feature.column for feature in features.columns]


def _of_champion(inputs: GateInputs, dataset: Dataset, order: Array | None) -> Array:
    """Return the champion's predictions for the test rows, with the classes in the order of the rows'.

    Raises:
        OtherClasses: it has other classes than the rows.
    """
    task = inputs.task
    registered = task.champion_signature or {}
    model = _version(task, inputs.clients, CHAMPION, Path(task.champion or ""), registered)
    _refuse_targets(model, dataset)
    y_pred = _predictions(model, dataset.rows_for(model.features, dataset.parts.test), order)
    return in_order_of(dataset.profile.class_labels, task.champion_classes, y_pred)


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
            outcomes = [GateOutcome(name, "not_evaluated", detail=unknown["/metric"]) for name in names]
        else:
            train = dataset.parts.train
            before = dataset.weights_of(train)
            weights = None if before is None or self._weights is None else (before, self._weights)
            baseline = baseline_gate(
                self._metric, dataset.task, dataset.y[train], self._y, self._ours, weights
            )
            outcomes = [self._against_champion(), baseline]
        for i, floor in enumerate(rules.floors):
            if (why := unknown.get(f"/floors/{i}/metric")) is not None:
                outcomes.append(GateOutcome(floor.gate, "not_evaluated", detail=why))
                continue
            outcomes.append(floor_gate(floor, self._measured(floor.metric, TEST_METRICS[floor.metric][1])))
        for i, slice_rule in enumerate(rules.slices):
            why = unknown.get(f"/slices/{i}/metric" if slice_rule.metric else "/metric")
            outcomes.append(
                self._on_slice(slice_rule)
                if why is None
                else GateOutcome(slice_rule.gate, "not_evaluated", detail=why)
            )
        return outcomes

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
        outcome = metric_gate(measured, theirs, self._task.rules.tolerance)
        if self._task.champion_classes is None and self._dataset.profile.class_labels:
            return replace(outcome, detail="; ".join(filter(None, (outcome.detail, BY_POSITION))))
        return outcome

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


def _evaluated(inputs: GateInputs, dataset: Dataset, y_pred: Array) -> dict[str, float | None]:
    """Return the challenger's scores.

    If it needs code, they come from an evaluation that is reported: the one in its training was computed
    by a process that had executed the code.
    """
    if not inputs.model.is_sandboxed:
        return _scores(dataset, y_pred)
    test, labels = dataset.parts.test, dataset.profile.class_labels
    seed = inputs.task.spec.required_data.split.seed if inputs.task.spec is not None else 0
    evaluation = evaluate(dataset.task, dataset.y[test], y_pred, labels, seed, dataset.weights_of(test))
    write_json(inputs.report, "evaluation", "evaluation.json", evaluation)
    return scores(evaluation)


def _batch_invariance(inputs: GateInputs) -> GateOutcome:
    """Compare predictions for a few rows with those for the same rows in a larger batch.

    Servers gather requests into batches, so a prediction must not depend on the other rows in its batch.
    """
    name = "batch_invariance"
    if not inputs.model.predicts_rows:
        return GateOutcome(
            name, "not_evaluated", detail="only models with one input and one output are batched"
        )
    rows, model = inputs.sample[0][:INVARIANCE_ROWS], inputs.model
    alone = model.batch(rows)
    if len(alone) != len(rows):
        return GateOutcome(name, "failed", detail=f"{len(rows)} rows returned {len(alone)} predictions")
    difference = float(np.abs(alone - model.padded(rows, INVARIANCE_BATCH)).max())
    limit = model.rounding_limit(alone)
    detail = f"{len(rows)} rows compared with the same rows in a batch of {INVARIANCE_BATCH}"
    # Both are NaN or infinite if a prediction is.
    value, allowed = finite_or_none(difference), finite_or_none(limit)
    rule = "a prediction does not depend on the other rows of its batch, except for rounding"
    return GateOutcome(name, state_of(difference <= limit), value, allowed, detail=detail, rule=rule)


def _latency(inputs: GateInputs) -> GateOutcome:
    """Measure the latency for one row and compare it with the ceiling, if there is one."""
    model = inputs.model
    if not model.predicts_rows:
        return GateOutcome(
            "latency", "not_evaluated", detail="only models with one input and one output are timed"
        )
    times = measure_latency(model, inputs.sample[0][: max(BATCH_SIZES)])
    detail = ", ".join(f"batch {size}: p50 {t.p50_ms} ms, p95 {t.p95_ms} ms" for size, t in times.items())
    detail = f"{detail} on {hardware(inputs.task.threads, on_cpu=model.is_sandboxed)}"
    if model.is_sandboxed:
        detail = f"{detail}; {FROM_OUTSIDE}"
    return latency_gate(times["1"].p95_ms, inputs.task.rules.latency_p95_ms, detail)
