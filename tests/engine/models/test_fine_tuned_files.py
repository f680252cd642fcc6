"""Versions that are trained further: their files, pipelines and interruptions."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import BaseModelFile, DatasetFile
from jobs.messages.training import TrainTask
from jobs.spec.experiment import ExperimentSpec
from tests.engine.helpers import RecordingReport, blobs, profiled
from tests.engine.models.test_fine_tuning import FIT, LOSS, layered, spec, stored
from workers.engine.data.dataset import Dataset


@pytest.fixture(scope="module")
def blobs_file(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    folder = tmp_path_factory.mktemp("blobs")
    x, y = blobs()
    np.savez(folder / "blobs.npz", x=x, y=y)
    return profiled(folder / "p", source="npz", path=str(folder / "blobs.npz"))


@pytest.fixture(scope="module")
def data(blobs_file: DatasetFile) -> Dataset:
    from jobs.spec.sections.data import DataSpec
    from workers.engine.data.dataset import load_dataset

    return load_dataset(blobs_file, DataSpec(dataset="b"))


def test_a_file_of_another_digest_is_refused(tmp_path: Path) -> None:
    from workers.engine.errors import BadModel
    from workers.engine.models import base_models

    file = stored(layered(), tmp_path)
    with pytest.raises(BadModel, match="sha256"):
        base_models.provide(file.model_copy(update={"digest": "0" * 64}))


def test_the_trained_model_is_saved_with_its_weights_and_without_augmentation(tmp_path: Path) -> None:
    """The model is built again from the version's file, so the variable order has to agree."""
    import keras

    from workers.engine.models.augment import saved_variables
    from workers.engine.training.prepare import prepare

    keras.utils.set_random_seed(7)
    inputs = keras.Input((8, 8, 1))
    x = keras.layers.Conv2D(4, 3, name="conv")(inputs)
    x = keras.layers.add([keras.layers.Conv2D(4, 1, name="a")(x), keras.layers.Conv2D(4, 1, name="b")(x)])
    x = keras.layers.Dropout(0.1)(keras.layers.GlobalAveragePooling2D()(x))
    file = stored(keras.Model(inputs, keras.layers.Dense(10, activation="softmax")(x)), tmp_path)
    images = digits(tmp_path)
    of = spec(file, {"augmentation": {"flip": "horizontal"}}, freeze_to="conv")
    ready = prepare(of, images, images.parts.train[:64], name="t", seed=3)
    for number, variable in enumerate(ready.model.trainable_variables):
        variable.assign(variable + number)
    saved = ready.model_to_save("x")
    trained = saved_variables(ready.model)
    # Keras numbers the paths of random generators, those of the augmentation included.
    assert [v.path.partition("/")[2] for v in saved.variables] == [v.path.partition("/")[2] for v in trained]
    np.testing.assert_allclose(
        saved.predict(images.x[:5], verbose=0), ready.predict(images.x[:5], 5), rtol=1e-5
    )


def digits(folder: Path) -> Any:
    from jobs.spec.sections.data import DataSpec
    from workers.engine.data.dataset import load_dataset

    return load_dataset(profiled(folder / "digits", bundled="digits"), DataSpec(dataset="digits"))


def test_a_training_exports_a_model_whose_frozen_layers_are_the_versions(
    blobs_file: DatasetFile, tmp_path: Path
) -> None:
    from workers.engine.models.files import load_model
    from workers.engine.tasks import train as train_task

    file = stored(layered(), tmp_path)
    report = RecordingReport(tmp_path)
    task = TrainTask(
        folder=str(tmp_path), checkpoints=str(tmp_path / "c"), dataset=blobs_file, retrain=None,
        spec=spec(file, {"learning_rate": 0.1}, head="new", freeze_to="all"), objective=LOSS, model_name="m1",
        base_model=file,
    )  # fmt: skip
    result = train_task.run(task, report)
    assert result["metrics"]["test"]["accuracy"] > 0.5
    exported = load_model(tmp_path / "model.keras", tmp_path)
    np.testing.assert_array_equal(exported.get_layer("first").kernel, layered().get_layer("first").kernel)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["trainable"] == 27
    assert {node["name"] for node in summary["graph"] if node["trainable"]} == {"output"}


def test_a_table_keeps_the_pipeline_of_the_version(tmp_path: Path) -> None:
    """New data have other values and other statistics, but each input position keeps its meaning."""
    from workers.engine.models import base_models
    from workers.engine.tasks import train as train_task
    from workers.features.files import read_features

    def task(folder: Path, rows: str, model: dict[str, Any], **more: Any) -> TrainTask:
        folder.mkdir(parents=True)
        (folder / "data.csv").write_text(rows)
        body = {"data": {"dataset": "b"}, "model": model, "fit": {**FIT, "epochs": 1}}
        return TrainTask(
            folder=str(folder), checkpoints=str(folder / "c"), spec=ExperimentSpec.model_validate(body),
            dataset=profiled(folder / "p", source="csv", path=str(folder / "data.csv"), target="y"),
            retrain=None, objective=LOSS, model_name="m1", **more,
        )  # fmt: skip

    def rows(cities: str, first: int) -> str:
        lines = [f"{cities[i % len(cities)]},{first + i},{'yes' if i % 3 else 'no'}" for i in range(90)]
        return "\n".join(["city,age,y", *lines])

    first = task(
        tmp_path / "one", rows("ABC", 0), {"kind": "template", "template": "mlp", "args": {"units": 4}}
    )
    train_task.run(first, RecordingReport(tmp_path / "one"))
    model_file = tmp_path / "one" / "model.keras"
    digest = hashlib.sha256(model_file.read_bytes()).hexdigest()
    version = {"kind": "version", "model": "m", "number": 1, "digest": digest}
    file = BaseModelFile(path=str(model_file), digest=digest)
    second = task(tmp_path / "two", rows("BCDE", 500), version, base_model=file)
    train_task.run(second, RecordingReport(tmp_path / "two"))
    assert read_features(tmp_path / "two" / "model.keras") == read_features(model_file)
    assert base_models.features_of(second.spec.model) == read_features(model_file)


def trial_task(file: Any, folder: Path, base: BaseModelFile, *, seeds: tuple[int, ...], **args: Any) -> Any:
    """Return a task for one trial in a search over the factor, with an execution for each seed."""
    from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask

    row = {"name": "learning_rate_factor", "kind": "float", "min": 0.01, "max": 1.0}
    body = {**spec(base, **args).to_json(), "search": {"objective": LOSS, "space": [row]}}
    of = ExperimentSpec.model_validate(body)
    plans = tuple(ExecutionPlan(execution=seed, seed=40 + seed) for seed in seeds)
    return TrialTask(
        folder=str(folder), checkpoints=str(folder), spec=of, objective=LOSS, dataset=file, base_model=base,
        trials=(TrialPlan(number=1, values={}, spec=of, executions=plans),),
    )  # fmt: skip


def test_an_interrupted_training_continues_as_if_it_had_not_stopped(
    blobs_file: DatasetFile, tmp_path: Path
) -> None:
    from jobs.messages.task import CheckpointFolder
    from workers.engine.models.files import load_model
    from workers.engine.report import TaskInterrupted
    from workers.engine.tasks import train as train_task

    file = stored(layered(), tmp_path)

    def task(folder: Path, **more: Any) -> TrainTask:
        folder.mkdir(exist_ok=True)
        return TrainTask(
            folder=str(folder), checkpoints=str(folder / "c"), spec=spec(file, head="new", freeze_to="first"),
            dataset=blobs_file, retrain=None, objective=LOSS, model_name="m1", base_model=file, **more,
        )  # fmt: skip

    train_task.run(task(tmp_path / "whole"), RecordingReport(tmp_path / "whole"))
    report = RecordingReport(tmp_path / "part")
    report.requests = ["pause"]
    with pytest.raises(TaskInterrupted):
        train_task.run(task(tmp_path / "part"), report)
    ((folder,), named) = report.of("checkpoint")[-1]
    resume = (CheckpointFolder(folder=folder, manifest=named["manifest"], step=named["step"]),)
    train_task.run(task(tmp_path / "part", resume=resume), RecordingReport(tmp_path / "part"))
    whole, part = (load_model(tmp_path / name / "model.keras", tmp_path) for name in ("whole", "part"))
    for one, two in zip(whole.get_weights(), part.get_weights(), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5)


def test_the_way_to_convert_an_h5_file_works(tmp_path: Path) -> None:
    import keras

    from workers.engine.models.untrusted import scan

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.save(tmp_path / "model.h5")
    keras.saving.load_model(tmp_path / "model.h5", compile=False).save(tmp_path / "model.keras")
    assert scan(tmp_path / "model.keras").stored == 8
