"""Gates for whole models, evaluated as a task."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest

from jobs.kinds.gate.payload import GateTask
from jobs.messages.task import DatasetFile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.gates import Floor, GateRules, Slice
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from workers.engine.data.store import file_digest
from workers.engine.tasks import gate

Setting = tuple[Path, ExperimentSpec, DatasetFile]


NAMES = [
    "loads", "digest", "signature", "metric", "better_than_baseline", "finite", "batch_invariance", "latency",
]  # fmt: skip


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
