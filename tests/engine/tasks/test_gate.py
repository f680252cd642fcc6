import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from jobs.kinds.gate.payload import GateTask
from jobs.messages.task import DatasetFile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.gates import Floor, GateRules, Slice
from jobs.spec.sections.search import Direction
from jobs.spec.signature import Signature
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from workers.engine.arrays import Array
from workers.engine.data.store import file_digest
from workers.engine.evaluation.gate_metrics import Estimate, metric_function
from workers.engine.evaluation.gate_outcome import ChallengerMetric
from workers.engine.evaluation.gates import (
    baseline_gate,
    finite_gate,
    floor_gate,
    latency_gate,
    metric_gate,
    slice_gate,
)
from workers.engine.evaluation.signature_gate import signature_gate
from workers.engine.tasks import gate

Setting = tuple[Path, ExperimentSpec, DatasetFile]

NAMES = [
    "loads", "digest", "signature", "metric", "better_than_baseline", "finite", "batch_invariance", "latency",
]  # fmt: skip


def signature(
    shape: tuple[int | None, ...] = (8, 8), classes: int = 10, name: str = "input", dtype: str = "float32"
) -> Signature:
    return Signature.model_validate(
        {
            "inputs": [{"name": name, "dtype": dtype, "shape": shape}],
            "outputs": [{"name": "output", "dtype": "float32", "shape": (classes,)}],
        }
    )


def outputs_named(*names: str, shape: tuple[int | None, ...] = ()) -> Signature:
    outputs = [{"name": name, "dtype": "float32", "shape": shape} for name in names]
    return Signature.model_validate({**signature().model_dump(), "outputs": outputs})


def test_outputs_keep_their_names_and_may_change_their_order() -> None:
    champion = outputs_named("score", "next")
    assert signature_gate(outputs_named("next", "score"), champion).state == "passed"
    renamed = signature_gate(outputs_named("output_0", "output_1"), champion)
    assert (renamed.state, renamed.detail) == (
        "failed",
        "the outputs were score, next; they are output_0, output_1",
    )
    assert signature_gate(outputs_named("score", "next", shape=(2,)), champion).state == "failed"


def test_the_only_output_keeps_its_name_and_form() -> None:
    champion = outputs_named("score")
    assert signature_gate(outputs_named("score"), champion).state == "passed"
    renamed = signature_gate(outputs_named("probability"), champion)
    assert (renamed.state, renamed.detail) == ("failed", "the outputs were score; they are probability")
    assert signature_gate(outputs_named("score", shape=(2,)), champion).state == "failed"


def test_a_signature_may_become_more_general_but_not_change() -> None:
    assert signature_gate(signature(), signature()).state == "passed"
    assert signature_gate(signature((None, 8)), signature()).state == "passed"
    assert signature_gate(signature(), None).state == "skipped"
    for other in (signature((8, 9)), signature((8,)), signature(name="x"), signature(dtype="int32"),
                  signature(classes=3)):  # fmt: skip
        assert signature_gate(other, signature()).state == "failed"
    assert signature_gate(signature(), signature((None, 8))).state == "failed"


def columns_of(**types: str) -> Signature:
    columns = [{"name": name, "type": kind} for name, kind in types.items()]
    return Signature.model_validate({**signature().model_dump(), "columns": columns})


def test_a_column_may_take_more_values_but_not_fewer() -> None:
    champion = columns_of(age="integer", city="category")
    for other in ({"age": "integer"}, {"age": "number"}, {"age": "number", "new": "date"}):
        assert signature_gate(columns_of(city="category", **other), champion).state == "passed"
    narrower = signature_gate(champion, columns_of(age="number", city="category"))
    assert (narrower.state, narrower.detail) == ("failed", "column 'age' was number, is integer")
    assert signature_gate(columns_of(age="integer"), champion).detail == "column 'city' is missing"


def value(
    number: float,
    metric: str = "accuracy",
    direction: Direction = "max",
    rows: int = 360,
    weighted_by: str = "",
) -> ChallengerMetric:
    found = Estimate(number, number - 0.02, number + 0.02)
    return ChallengerMetric(metric, direction, found, rows, weighted_by)


def test_accuracy_may_fall_by_the_tolerance_and_no_more() -> None:
    def judged(ours: float, tolerance: float = 0.01) -> Any:
        return metric_gate(value(ours), 0.96, tolerance)

    assert judged(0.955).state == "passed"
    assert judged(0.945).state == "failed"
    assert judged(0.945, tolerance=0.02).state == "passed"
    assert judged(math.nan).state == "failed"


def test_an_error_may_grow_by_a_share_and_no_more() -> None:
    def judged(ours: float, champion: float = 50.0) -> Any:
        return metric_gate(value(ours, "rmse", "min", 89), champion, 0.01)

    assert judged(50.4).state == "passed"
    assert judged(50.6).state == "failed"
    assert judged(50.6, math.nan).state == "not_evaluated"


def test_a_gate_shows_its_rule_with_every_number() -> None:
    gate = metric_gate(value(0.945), 0.96, 0.01)
    assert gate.rule == (
        "accuracy on the test rows at least 0.95: the champion's 0.96 minus the tolerance of 0.01"
    )
    assert (gate.value, gate.limit, gate.champion, gate.rows) == (0.945, 0.95, 0.96, 360)
    assert (gate.metric, gate.low, gate.high) == ("accuracy", 0.945 - 0.02, 0.945 + 0.02)


def test_a_floor_is_a_lower_bound_or_an_upper_one_by_the_metric() -> None:
    high = Floor(metric="roc_auc", limit=0.8)
    assert floor_gate(high, value(0.81, "roc_auc")).state == "passed"
    assert floor_gate(high, value(0.79, "roc_auc")).state == "failed"
    low = Floor(metric="log_loss", limit=0.4)
    assert floor_gate(low, value(0.39, "log_loss", "min")).state == "passed"
    assert floor_gate(low, value(0.41, "log_loss", "min")).state == "failed"


def test_a_slice_must_reach_its_limit_and_the_champion() -> None:
    one = Slice(column="city", value="Paris", limit=0.7)

    def judged(ours: float, champion: float | None, one: Any = one) -> Any:
        return slice_gate(one, value(ours), champion, 0.01)

    assert (judged(0.71, None).state, judged(0.69, None).state) == ("passed", "failed")
    assert (judged(0.85, 0.86).state, judged(0.84, 0.86).state) == ("passed", "failed")
    assert judged(0.69, 0.5).state == "failed"
    assert judged(0.1, None, Slice(column="city", value="Paris")).state == "skipped"


def test_the_tolerance_of_a_slice_is_a_percentage_where_lower_values_are_better() -> None:
    one = Slice(column="city", value="Paris")
    assert slice_gate(one, value(50.4, "rmse", "min", 40), 50.0, 0.01).rule.endswith(
        "at most 50.5, the champion's 50 with the tolerance of 1 %"
    )


def test_a_latency_above_the_ceiling_fails() -> None:
    assert latency_gate(4.0, 5.0, "").state == "passed"
    assert latency_gate(6.0, 5.0, "").state == "failed"
    assert latency_gate(6.0, None, "").state == "passed"


def predictions_for(truth: Array, share: float, classes: int, rng: np.random.Generator) -> Array:
    """Return correct predictions for about `share` of the rows and random ones for the others."""
    guess = np.where(rng.random(len(truth)) < share, truth, rng.integers(0, classes, len(truth)))
    return 0.8 * np.eye(classes)[guess] + 0.2 / classes


def test_only_a_model_that_has_learned_beats_the_baseline() -> None:
    rng = np.random.default_rng(0)
    train, test = rng.integers(0, 10, 1000), rng.integers(0, 10, 360)
    learned = baseline_gate("accuracy", "multiclass", train, test, predictions_for(test, 0.5, 10, rng))
    chance = baseline_gate("accuracy", "multiclass", train, test, predictions_for(test, 0.0, 10, rng))
    assert (learned.state, chance.state) == ("passed", "failed")
    assert learned.limit == chance.limit


def test_a_rare_class_passes_by_log_loss_where_accuracy_cannot_improve() -> None:
    rng = np.random.default_rng(0)
    train, test = (rng.random(4000) < 0.03).astype(int), (rng.random(2000) < 0.03).astype(int)
    by_loss = baseline_gate("accuracy", "binary", train, test, np.where(test == 1, 0.4, 0.01))
    assert by_loss.state == "passed"
    # the values shown are those of the comparison that passed, and both are listed
    assert by_loss.metric == "log_loss"
    value, limit = by_loss.value, by_loss.limit
    assert isinstance(value, float) and isinstance(limit, float)
    assert value < limit
    assert [(one.metric, one.passed) for one in by_loss.alternatives] == [
        ("accuracy", False), ("log_loss", True),
    ]  # fmt: skip
    assert "a gain in log_loss also counts" in by_loss.rule
    assert baseline_gate("accuracy", "binary", train, test, np.full(2000, 0.03)).state == "failed"


def test_a_model_under_class_weights_passes_by_its_auc_where_accuracy_and_log_loss_are_worse() -> None:
    rng = np.random.default_rng(0)
    train, test = (rng.random(4000) < 0.08).astype(int), (rng.random(500) < 0.08).astype(int)
    p = 1 / (1 + np.exp(-(rng.normal(size=500) + 1.5 * test)))
    by_accuracy = baseline_gate("accuracy", "binary", train, test, p)
    by_auc = baseline_gate("roc_auc", "binary", train, test, p)
    assert (by_accuracy.state, by_auc.state) == ("failed", "passed")
    assert (by_auc.limit, by_auc.metric) == (0.5, "roc_auc")
    chance = np.random.default_rng(1).random(500)
    assert baseline_gate("roc_auc", "binary", train, test, chance).state == "failed"


def test_recall_has_no_baseline_because_a_constant_can_have_all_of_it() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(500) < 0.3).astype(int)
    all_positive = np.full(500, 0.9)
    assert metric_function("recall", "binary")(y, all_positive, None) == 1.0
    gate = baseline_gate("recall", "binary", y, y, all_positive)
    assert (gate.state, gate.metric) == ("failed", "roc_auc")


def test_regression_and_multilabel_have_their_baselines() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(300, 1))
    assert baseline_gate("rmse", "regression", y, y, y + 0.3 * rng.normal(size=y.shape)).state == "passed"
    assert baseline_gate("rmse", "regression", y, y, rng.normal(size=y.shape)).state == "failed"
    assert baseline_gate("rmse", "regression", y, y, np.full(y.shape, np.nan)).state == "failed"
    labels = (rng.random((300, 3)) < 0.4).astype(float)
    assert (
        baseline_gate("accuracy", "multilabel", labels, labels, np.clip(labels, 0.1, 0.9)).state == "passed"
    )
    assert baseline_gate("accuracy", "multilabel", labels, labels, rng.random(labels.shape)).state == "failed"


def test_a_single_nan_fails_the_finite_gate() -> None:
    assert finite_gate([np.ones(3)]).state == "passed"
    assert finite_gate([np.ones(3), np.array([np.nan])]).state == "failed"


@pytest.fixture(scope="module", params=["wine", "diabetes"])
def setting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Setting:
    folder = tmp_path_factory.mktemp(request.param)
    return folder, spec_for(request.param), dataset_file(folder, request.param)


def evaluate_gates(
    folder: Path, challenger: Path | str, **more: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    report = ArtifactReport(folder)
    task = GateTask(
        **{"folder": str(folder), "challenger": str(challenger), "dataset": None, "spec": None,
           "challenger_digest": file_digest(Path(challenger)), **more}
    )  # fmt: skip
    result = gate.run(task, report)
    json.dumps(result, allow_nan=False)
    assert [g["name"] for g in result["gates"]] == NAMES
    return {g["name"]: g for g in result["gates"]}, result


def test_a_trained_model_passes_against_itself_as_champion(setting: Setting, tmp_path: Path) -> None:
    folder, spec, file = setting
    member = train_member(folder, "good", spec, file)
    gates, result = evaluate_gates(
        tmp_path, member.model, dataset=file, spec=spec, champion=member.model,
        champion_signature=None,
    )  # fmt: skip
    states = {name: g["state"] for name, g in gates.items()}
    assert states == {**dict.fromkeys(NAMES, "passed"), "signature": "skipped"}
    assert gates["metric"]["value"] == gates["metric"]["champion"]
    assert result["metrics"]["challenger"] == result["metrics"]["champion"]
    assert result["test_rows"] > 0


def test_a_model_trained_on_shuffled_labels_fails_even_without_a_champion(
    setting: Setting, tmp_path: Path
) -> None:
    folder, spec, file = setting
    member = train_member(folder, "shuffled", spec, file, shuffled=True)
    gates, _ = evaluate_gates(tmp_path, member.model, dataset=file, spec=spec)
    assert gates["better_than_baseline"]["state"] == "failed"
    assert gates["metric"]["state"] == "skipped"
    assert gates["loads"]["state"] == "passed"


def foreign(folder: Path, form: Callable[[Any], Any]) -> Path:
    inputs = keras.Input((4,), name="input")
    keras.Model(inputs, form(inputs)).save(folder / "m.keras")
    return folder / "m.keras"


def test_an_upload_without_data_leaves_its_metric_gates_open(tmp_path: Path) -> None:
    gates, result = evaluate_gates(tmp_path, foreign(tmp_path, keras.layers.Dense(3)))
    assert gates["metric"]["state"] == gates["better_than_baseline"]["state"] == "not_evaluated"
    assert gates["batch_invariance"]["state"] == gates["finite"]["state"] == "passed"
    assert result["metrics"] == {}


def test_infinite_predictions_fail_their_gates(tmp_path: Path) -> None:
    def overflow(x: Any) -> Any:
        return keras.layers.Rescaling(1e30)(keras.layers.Rescaling(1e30)(x))

    gates, _ = evaluate_gates(tmp_path, foreign(tmp_path, overflow))
    assert gates["batch_invariance"]["state"] == gates["finite"]["state"] == "failed"


def test_another_file_than_the_registered_one_fails_its_digest(tmp_path: Path) -> None:
    gates, _ = evaluate_gates(tmp_path, foreign(tmp_path, keras.layers.Dense(3)), challenger_digest="0" * 64)
    assert gates["digest"]["state"] == "failed"


def test_a_model_that_does_not_load_is_not_evaluated(tmp_path: Path) -> None:
    (tmp_path / "m.keras").write_bytes(b"no model")
    gates, _ = evaluate_gates(tmp_path, tmp_path / "m.keras")
    assert gates["loads"]["state"] == "failed"
    assert {gates[name]["state"] for name in NAMES[2:]} == {"not_evaluated"}


def test_predictions_that_depend_on_the_batch_are_found(tmp_path: Path) -> None:
    def over_the_batch(x: Any) -> Any:
        return keras.layers.UnitNormalization(axis=0)(x)

    inputs = keras.Input((4,), name="input")
    shifted = keras.layers.Rescaling(1.0, offset=1.0)(inputs)
    keras.Model(inputs, over_the_batch(shifted)).save(tmp_path / "m.keras")
    gates, _ = evaluate_gates(tmp_path, tmp_path / "m.keras")
    assert gates["batch_invariance"]["state"] == "failed"


def test_floors_slices_and_the_ceiling_are_gates_of_their_own(setting: Setting, tmp_path: Path) -> None:
    folder, spec, file = setting
    member = train_member(folder, "ruled", spec, file)
    metric, column = ("rmse", "sex") if "diabetes" in str(folder) else ("log_loss", "nowhere")
    rules = GateRules(
        floors=(Floor(metric=metric, limit=1e6),),
        slices=(Slice(column=column, value="0.05068", min_rows=1), Slice(column=column, value="x")),
        latency_p95_ms=1e-6,
    )
    names = [*NAMES[:5], *rules.own_gates(), *NAMES[5:]]
    task = GateTask(
        folder=str(tmp_path), challenger=str(member.model), challenger_digest=file_digest(Path(member.model)),
        champion=str(member.model), dataset=file, spec=spec, rules=rules,
    )  # fmt: skip
    result = gate.run(task, ArtifactReport(tmp_path))
    gates = {one["name"]: one for one in result["gates"]}
    assert list(gates) == names
    assert gates[f"floor:{metric}"]["state"] == "passed"
    assert gates[f"slice:{column}=x"]["state"] == "not_evaluated"
    assert (gates["latency"]["state"], gates["latency"]["limit"]) == ("failed", 1e-6)


def test_a_metric_of_another_task_is_not_evaluated_and_says_which_fit(tmp_path: Path) -> None:
    spec, file = spec_for("wine"), dataset_file(tmp_path, "wine")
    member = train_member(tmp_path, "other", spec, file)
    gates, _ = evaluate_gates(tmp_path, member.model, dataset=file, spec=spec, rules=GateRules(metric="rmse"))
    for name in ("metric", "better_than_baseline"):
        assert gates[name]["state"] == "not_evaluated"
        assert "use one of accuracy, log_loss" in gates[name]["detail"]


def test_the_objective_of_the_search_is_the_metric(tmp_path: Path) -> None:
    spec, file = spec_for("wine"), dataset_file(tmp_path, "wine")
    member = train_member(tmp_path, "aimed", spec, file)
    gates, _ = evaluate_gates(
        tmp_path, member.model, dataset=file, spec=spec, champion=member.model,
        objective={"metric": "val_loss", "direction": "min"},
    )  # fmt: skip
    assert (gates["metric"]["metric"], gates["metric"]["direction"]) == ("log_loss", "min")
    assert gates["metric"]["limit"] == pytest.approx(1.01 * gates["metric"]["champion"])
