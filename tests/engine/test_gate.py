import json
from pathlib import Path

import keras
import numpy as np
import pytest

from jobs.contracts.signature import Signature
from jobs.kinds.gate.payload import GateTask
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from workers.engine.data.store import file_digest
from workers.engine.evaluation.gates import baseline_gate, finite_gate, metric_gate, signature_gate
from workers.engine.tasks import gate

NAMES = [
    "loads", "digest", "signature", "metric", "better_than_baseline", "finite", "batch_invariance", "latency",
]  # fmt: skip


def signature(shape=(8, 8), classes=10, name="input", dtype="float32"):
    return Signature.model_validate(
        {
            "inputs": [{"name": name, "dtype": dtype, "shape": shape}],
            "outputs": [{"name": "output", "dtype": "float32", "shape": (classes,)}],
        }
    )


def test_a_signature_may_become_more_general_but_not_change():
    assert signature_gate(signature(), signature()).state == "passed"
    assert signature_gate(signature((None, 8)), signature()).state == "passed"
    assert signature_gate(signature(), None).state == "skipped"
    for other in (signature((8, 9)), signature((8,)), signature(name="x"), signature(dtype="int32"),
                  signature(classes=3)):  # fmt: skip
        assert signature_gate(other, signature()).state == "failed"
    assert signature_gate(signature(), signature((None, 8))).state == "failed"


def test_accuracy_may_fall_by_delta_and_no_more():
    assert metric_gate("multiclass", 0.955, 0.96, 0.01).state == "passed"
    assert metric_gate("multiclass", 0.945, 0.96, 0.01).state == "failed"
    assert metric_gate("multiclass", None, 0.96, 0.01).state == "failed"


def test_an_error_may_grow_by_a_share_and_no_more():
    assert metric_gate("regression", 50.4, 50.0, 0.01).state == "passed"
    assert metric_gate("regression", 50.6, 50.0, 0.01).state == "failed"
    assert metric_gate("regression", 50.6, None, 0.01).state == "not_evaluated"


def predictions_for(truth, share, classes, rng):
    """Return correct predictions for about `share` of the rows and random ones for the others."""
    guess = np.where(rng.random(len(truth)) < share, truth, rng.integers(0, classes, len(truth)))
    return 0.8 * np.eye(classes)[guess] + 0.2 / classes


def test_only_a_model_that_has_learned_beats_the_baseline():
    rng = np.random.default_rng(0)
    train, test = rng.integers(0, 10, 1000), rng.integers(0, 10, 360)
    learned = baseline_gate("multiclass", train, test, predictions_for(test, 0.5, 10, rng), 0)
    chance = baseline_gate("multiclass", train, test, predictions_for(test, 0.0, 10, rng), 0)
    assert (learned.state, chance.state) == ("passed", "failed")
    assert learned.limit == chance.limit


def test_a_rare_class_passes_by_log_loss_where_accuracy_cannot_improve():
    rng = np.random.default_rng(0)
    train, test = (rng.random(4000) < 0.03).astype(int), (rng.random(2000) < 0.03).astype(int)
    p = np.where(test == 1, 0.4, 0.01)
    assert baseline_gate("binary", train, test, p, 0).state == "passed"
    assert baseline_gate("binary", train, test, np.full(2000, 0.03), 0).state == "failed"


def test_regression_and_multilabel_have_their_baselines():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(300, 1))
    assert baseline_gate("regression", y, y, y + 0.3 * rng.normal(size=y.shape), 0).state == "passed"
    assert baseline_gate("regression", y, y, rng.normal(size=y.shape), 0).state == "failed"
    assert baseline_gate("regression", y, y, np.full(y.shape, np.nan), 0).state == "failed"
    labels = (rng.random((300, 3)) < 0.4).astype(float)
    assert baseline_gate("multilabel", labels, labels, np.clip(labels, 0.1, 0.9), 0).state == "passed"
    assert baseline_gate("multilabel", labels, labels, rng.random(labels.shape), 0).state == "failed"


def test_a_single_nan_fails_the_finite_gate():
    assert finite_gate([np.ones(3)]).state == "passed"
    assert finite_gate([np.ones(3), np.array([np.nan])]).state == "failed"


@pytest.fixture(scope="module", params=["wine", "diabetes"])
def setting(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return folder, spec_for(request.param), dataset_file(folder, request.param)


def evaluate_gates(folder, challenger, **more):
    report = ArtifactReport(folder)
    task = GateTask(
        **{"folder": str(folder), "challenger": str(challenger), "dataset": None, "spec": None,
           "challenger_digest": file_digest(Path(challenger)), **more}
    )  # fmt: skip
    result = gate.run(task, report)
    json.dumps(result, allow_nan=False)
    assert [g["name"] for g in result["gates"]] == NAMES
    return {g["name"]: g for g in result["gates"]}, result


def test_a_trained_model_passes_against_itself_as_champion(setting, tmp_path):
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


def test_a_model_trained_on_shuffled_labels_fails_even_without_a_champion(setting, tmp_path):
    folder, spec, file = setting
    member = train_member(folder, "shuffled", spec, file, shuffled=True)
    gates, _ = evaluate_gates(tmp_path, member.model, dataset=file, spec=spec)
    assert gates["better_than_baseline"]["state"] == "failed"
    assert gates["metric"]["state"] == "skipped"
    assert gates["loads"]["state"] == "passed"


def foreign(folder, form):
    inputs = keras.Input((4,), name="input")
    keras.Model(inputs, form(inputs)).save(folder / "m.keras")
    return folder / "m.keras"


def test_an_upload_without_data_leaves_its_metric_gates_open(tmp_path):
    gates, result = evaluate_gates(tmp_path, foreign(tmp_path, keras.layers.Dense(3)))
    assert gates["metric"]["state"] == gates["better_than_baseline"]["state"] == "not_evaluated"
    assert gates["batch_invariance"]["state"] == gates["finite"]["state"] == "passed"
    assert result["metrics"] == {}


def test_another_file_than_the_registered_one_fails_its_digest(tmp_path):
    gates, _ = evaluate_gates(tmp_path, foreign(tmp_path, keras.layers.Dense(3)), challenger_digest="0" * 64)
    assert gates["digest"]["state"] == "failed"


def test_a_model_that_does_not_load_is_not_evaluated(tmp_path):
    (tmp_path / "m.keras").write_bytes(b"no model")
    gates, _ = evaluate_gates(tmp_path, tmp_path / "m.keras")
    assert gates["loads"]["state"] == "failed"
    assert {gates[name]["state"] for name in NAMES[2:]} == {"not_evaluated"}


def test_predictions_that_depend_on_the_batch_are_found(tmp_path):
    def over_the_batch(x):
        return keras.layers.UnitNormalization(axis=0)(x)

    inputs = keras.Input((4,), name="input")
    shifted = keras.layers.Rescaling(1.0, offset=1.0)(inputs)
    keras.Model(inputs, over_the_batch(shifted)).save(tmp_path / "m.keras")
    gates, _ = evaluate_gates(tmp_path, tmp_path / "m.keras")
    assert gates["batch_invariance"]["state"] == "failed"
