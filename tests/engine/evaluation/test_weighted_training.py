"""Row weights in trainings and gates."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.gate.payload import GateTask
from jobs.messages.reports.evaluation import EVALUATION
from jobs.messages.task import DatasetFile
from jobs.messages.training import TrainTask
from jobs.spec.gates import Floor, GateRules, Slice
from tests.engine.evaluation.test_weights import FIT, file_of, text_of
from tests.engine.helpers import RecordingReport, spec_of
from tests.present import present
from workers.engine.arrays import Array
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.store import file_digest
from workers.engine.evaluation.evaluate import evaluate
from workers.engine.models.predict import Predictor
from workers.engine.tasks import gate, train
from workers.engine.training.model_cache import ModelCache
from workers.engine.training.prepare import prepare


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return file_of(tmp_path_factory.mktemp("weights"), text_of())


@pytest.fixture(scope="module")
def data(file: DatasetFile) -> Dataset:
    return load_dataset(file, present(spec_of("d").data))


def weights_of(data: Dataset, class_weights: dict[str, float] | None = None) -> Array:
    """Return the training rows' weights as scikit-learn or Keras would take them."""
    rows = data.parts.train
    row_weights = rows % 4 / (rows % 4).mean()
    labels = data.profile.class_labels
    return row_weights * np.array([(class_weights or {}).get(labels[k], 1.0) for k in data.y[rows]])


def test_a_model_that_is_reused_has_the_weights_of_its_own_rows(data: Dataset) -> None:
    cache, rows = ModelCache(), data.parts.train
    spec = spec_of("d", args={"units": 4}, fit={**FIT, "class_weights": {"yes": 3.0}})
    first = cache.prepare(spec_of("d", args={"units": 4}, fit=FIT), data, rows, name="t", seed=0)
    second = cache.prepare(spec, data, rows, name="t", seed=1)
    assert second.model is first.model
    np.testing.assert_allclose(first.batches.weights, weights_of(data), rtol=1e-6)
    np.testing.assert_allclose(second.batches.weights, weights_of(data, {"yes": 3.0}), rtol=1e-6)


@pytest.mark.parametrize("batch_size", [64, 16], ids=["one batch", "batches"])
def test_both_loops_train_like_fit_of_keras_with_sample_weight(data: Dataset, batch_size: int) -> None:
    import keras

    from workers.engine.models.build import build
    from workers.engine.models.variables import values
    from workers.engine.training.loops import FitLoop

    fit = {**FIT, "batch_size": batch_size, "shuffle": False, "class_weights": {"yes": 3.0}}
    spec, rows = spec_of("d", args={"units": 4}, fit=fit), data.parts.train
    x, y = data.take(rows)
    trainings = []
    for kind in ("program", "fit"):
        prepared = prepare(spec, data, rows, name="t", seed=0)
        loop = prepared.loop(epochs=2) if kind == "program" else FitLoop(prepared.model, prepared.batches)
        logs = [loop.epoch(epoch, 0, [], lambda _: None) for epoch in (1, 2)]
        loop.sync()
        trainings.append((logs, values(prepared.model.trainable_variables)))
        scaling = prepared.scaling
    plain = build(spec, data.profile, scaling, name="t", seed=0)
    # The default of Keras divides by the number of rows, which is the sum of weights only over all rows.
    loss = (
        "binary_crossentropy"
        if batch_size > len(x)
        else keras.losses.BinaryCrossentropy(reduction="mean_with_sample_weight")
    )
    plain.compile(keras.optimizers.Adam(0.01), loss, weighted_metrics=["accuracy"])
    weights = weights_of(data, {"yes": 3.0})
    if batch_size > len(x):
        weights = weights / weights.mean()
    history = plain.fit(
        x, y[:, None].astype(np.float32), sample_weight=weights, batch_size=batch_size, epochs=2,
        shuffle=False, verbose=0,
    ).history  # fmt: skip
    for logs, variables in trainings:
        assert [entry["loss"] for entry in logs] == pytest.approx(history["loss"], rel=1e-4)
        assert [entry["accuracy"] for entry in logs] == pytest.approx(history["accuracy"], rel=1e-4)
        for mine, theirs in zip(variables, values(plain.trainable_variables), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-5)


def test_a_forest_is_that_of_scikit_learn_with_sample_weight(data: Dataset) -> None:
    from sklearn.ensemble import RandomForestClassifier

    rows, test = data.parts.train, data.parts.test
    spec = spec_of("d", "trees", args={"method": "random_forest"}, fit={"epochs": 5})
    prepared = prepare(spec, data, rows, name="t", seed=0)
    loop = prepared.loop(prepared.evaluation_set(data.parts.validation), epochs=5)
    logs = loop.epoch(5, 0, [], lambda _: None)
    x, y = data.take(rows)
    forest = RandomForestClassifier(5, random_state=0, max_features="sqrt")
    forest.fit(x, y, sample_weight=weights_of(data))
    np.testing.assert_allclose(
        prepared.predict(data.x[test], 64)[:, 0], forest.predict_proba(data.x[test])[:, 1], atol=1e-6
    )
    right = forest.predict(x) == y
    assert logs["accuracy"] == pytest.approx(np.average(right, weights=weights_of(data)))


def test_rows_of_weight_0_change_neither_the_training_nor_its_measures(tmp_path: Path) -> None:
    def reports(name: str, text: str) -> tuple[dict[str, Any], Any]:
        folder = tmp_path / name
        folder.mkdir()
        fit = {"epochs": 3, "metrics": ["accuracy", "auc"]}
        split = {"stratify": False}
        spec = spec_of("d", "trees", args={"method": "boosting", "min_rows": 1}, fit=fit, split=split)
        task = TrainTask(
            folder=str(folder), fence=1, dataset=file_of(folder, text), spec=spec, model_name="m",
            retrain={"include_validation": True}, objective={"metric": "val_auc", "direction": "max"},
        )  # fmt: skip
        result = train.run(task, RecordingReport(folder))
        return result, EVALUATION.validate_json((folder / "evaluation.json").read_bytes())

    plain, evaluation = reports("plain", text_of())
    lines = text_of().splitlines()
    # Every fourth row has weight 0.
    wrong = [
        line
        if not number or (number - 1) % 4
        else line.replace("no", "?").replace("yes", "no").replace("?", "yes")
        for number, line in enumerate(lines)
    ]
    other, again = reports("wrong", "\n".join(wrong))
    assert evaluation.weighted_by == again.weighted_by == "w"
    assert plain["metrics"]["test"] == other["metrics"]["test"]
    assert plain["metrics"]["validation"] == other["metrics"]["validation"]
    assert plain["measured"] == other["measured"]


@pytest.fixture(scope="module")
def trained(file: DatasetFile, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("trained")
    spec = spec_of("d", "trees", fit={"epochs": 3})
    task = TrainTask(
        folder=str(folder), fence=1, dataset=file, spec=spec, model_name="m", retrain=None,
        objective={"metric": "val_loss", "direction": "min"},
    )  # fmt: skip
    train.run(task, RecordingReport(folder))
    return next(folder.glob("*.keras")), spec


def test_gates_weigh_the_test_rows_of_the_data(
    file: DatasetFile, data: Dataset, trained: tuple[Path, Any], tmp_path: Path
) -> None:
    from workers.engine.models.files import load_model

    path, spec = trained
    rules = GateRules(
        floors=(Floor(metric="log_loss", limit=10.0),), slices=(Slice(column="b", value="1", min_rows=1),)
    )
    task = GateTask(
        folder=str(tmp_path), fence=1, challenger=str(path), challenger_digest=file_digest(path),
        champion=str(path), dataset=file, spec=spec, rules=rules,
    )  # fmt: skip
    result = gate.run(task, RecordingReport(tmp_path))
    test = data.parts.test
    p = Predictor(load_model(path, tmp_path))(data.x[test])
    expected = evaluate("binary", data.y[test], p, weights=data.weights_of(test))
    values = {name: metric.value for name, metric in expected.metrics.items()}
    assert result["metrics"] == {"challenger": values, "champion": values}
    gates = {gate_result["name"]: gate_result for gate_result in result["gates"]}
    assert gates["metric"]["value"] == pytest.approx(values["accuracy"])
    weighted = [gate_result for gate_result in gates.values() if "(weighted by w)" in gate_result["rule"]]
    assert len(weighted) == 4, [gate_result["rule"] for gate_result in gates.values()]


def test_a_slice_whose_rows_have_no_weight_is_not_evaluated(
    file: DatasetFile, trained: tuple[Path, Any], tmp_path: Path
) -> None:
    path, spec = trained
    rules = GateRules(slices=(Slice(column="w", value="0", min_rows=1),))
    task = GateTask(
        folder=str(tmp_path), fence=1, challenger=str(path), challenger_digest=file_digest(path),
        champion=str(path), dataset=file, spec=spec, rules=rules,
    )  # fmt: skip
    slice_result = {
        gate_result["name"]: gate_result for gate_result in gate.run(task, RecordingReport(tmp_path))["gates"]
    }["slice:w=0"]
    assert slice_result["state"] == "not_evaluated"
    assert slice_result["detail"] == f"all {slice_result['rows']} rows have weight 0 in w"
