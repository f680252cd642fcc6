"""Fine-tuning: stored weights, frozen layers, a kept or new head, and two learning rates."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import BaseModelFile, DatasetFile
from jobs.messages.training import TrainTask
from jobs.spec.experiment import ExperimentSpec
from tests.engine.compiled.test_program import assert_equal, train
from tests.engine.helpers import RecordingReport, blobs, profiled
from workers.engine.data.dataset import Dataset

FIT = {"epochs": 3, "batch_size": 16, "learning_rate": 0.01, "seed": 3}
LOSS = {"metric": "val_loss", "direction": "min"}


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


def stored(model: Any, folder: Path) -> BaseModelFile:
    """Save a model, make its file available to models of this process, and return it."""
    from workers.engine.models import base_models
    from workers.engine.models.files import save_model

    folder.mkdir(parents=True, exist_ok=True)
    save_model(model, folder / "base.keras")
    digest = hashlib.sha256((folder / "base.keras").read_bytes()).hexdigest()
    file = BaseModelFile(path=str(folder / "base.keras"), digest=digest)
    base_models.provide(file)
    return file


def layered(outputs: int = 3) -> Any:
    """Return dense → batch normalization → dense → head, with statistics unlike those of a new model."""
    import keras

    keras.utils.set_random_seed(7)
    inputs = keras.Input((4,), name="given")
    x = keras.layers.Normalization(mean=[1.0] * 4, variance=[4.0] * 4, name="normalize")(inputs)
    x = keras.layers.Dense(8, name="first")(x)
    x = keras.layers.BatchNormalization(name="norm")(x)
    x = keras.layers.Dense(8, activation="relu", name="second")(x)
    model = keras.Model(inputs, keras.layers.Dense(outputs, activation="softmax", name="output")(x))
    model.get_layer("norm").moving_mean.assign(np.arange(8) / 10)
    return model


def nested() -> Any:
    """Return a head behind a model inside the model."""
    import keras

    keras.utils.set_random_seed(7)
    body = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(8, name="low"), keras.layers.Dense(8, name="high")],
        name="body",
    )
    inputs = keras.Input((4,))
    return keras.Model(inputs, keras.layers.Dense(3, activation="softmax", name="top")(body(inputs)))


def spec(file: BaseModelFile, fit: dict[str, Any] | None = None, **args: Any) -> ExperimentSpec:
    model = {"kind": "version", "model": "m", "number": 1, "digest": file.digest, "args": args}
    body = {"data": {"dataset": "b"}, "model": model, "fit": {**FIT, **(fit or {})}}
    return ExperimentSpec.model_validate(body)


def prepared(of: ExperimentSpec, data: Any, seed: int = 3) -> Any:
    from workers.engine.training.prepare import prepare

    return prepare(of, data, data.parts.train, name="t", seed=seed)


def by_path(model: Any) -> dict[str, np.ndarray]:
    return {variable.path: np.array(variable.value) for variable in model.variables}


def test_frozen_layers_keep_their_weights_and_statistics_and_the_others_train(
    data: Dataset, tmp_path: Path
) -> None:
    file = stored(layered(), tmp_path)
    ready = prepared(spec(file, freeze_to="norm"), data)
    before = by_path(ready.model)
    np.testing.assert_array_equal(before["norm/moving_mean"], np.arange(8, dtype=np.float32) / 10)
    train(ready, tmp_path / "run", ready.loop(epochs=3))
    changed = {
        path for path, value in by_path(ready.model).items() if not np.array_equal(value, before[path])
    }
    assert changed == {"second/kernel", "second/bias", "output/kernel", "output/bias"}


def test_batch_normalization_that_is_not_frozen_adapts_its_statistics(data: Dataset, tmp_path: Path) -> None:
    ready = prepared(spec(stored(layered(), tmp_path), freeze_to="first"), data)
    before = by_path(ready.model)
    train(ready, tmp_path / "run", ready.loop(epochs=3))
    assert not np.array_equal(by_path(ready.model)["norm/moving_mean"], before["norm/moving_mean"])


@pytest.mark.parametrize("fit", [
    {"optimizer": "adam"}, {"optimizer": "adamw", "optimizer_args": {"weight_decay": 0.01}},
    {"optimizer": "sgd", "optimizer_args": {"momentum": 0.9}}, {"optimizer": "nadam"}, {"optimizer": "lion"},
], ids=lambda fit: fit["optimizer"])  # fmt: skip
def test_two_learning_rates_train_as_two_optimizers_of_a_plain_loop(
    data: Dataset, tmp_path: Path, fit: dict[str, Any]
) -> None:
    import jax
    import keras

    from workers.engine.models.optimizer import OPTIMIZERS

    ready = prepared(
        spec(stored(layered(), tmp_path), fit, freeze_to="first", learning_rate_factor=0.2), data
    )
    plain = keras.models.clone_model(ready.model)
    plain.set_weights(ready.model.get_weights())
    plain.trainable = True
    for name in ("normalize", "first"):
        plain.get_layer(name).trainable = False
    slow = [v for name in ("norm", "second") for v in plain.get_layer(name).trainable_variables]
    fast = plain.get_layer("output").trainable_variables
    kind = getattr(keras.optimizers, OPTIMIZERS[fit["optimizer"]])
    optimizers = [kind(learning_rate=rate, **fit.get("optimizer_args", {})) for rate in (0.002, 0.01)]
    loss_of = keras.losses.SparseCategoricalCrossentropy(reduction="mean_with_sample_weight")

    def loss(trainable: Any, other: Any, x: Any, y: Any, weights: Any) -> Any:
        outputs, other = plain.stateless_call(trainable, other, x, training=True)
        return loss_of(y, outputs, sample_weight=weights), other

    gradients = jax.value_and_grad(loss, has_aux=True)
    # One epoch of some steps: each operation of the plain loop is a call of its own.
    for x, y, weights in ready.batches.draw(1):
        values = [v.value for v in plain.trainable_variables]
        other = [v.value for v in plain.non_trainable_variables]
        (_, other), found = gradients(values, other, x, y, weights)
        of = {id(v): g for v, g in zip(plain.trainable_variables, found, strict=True)}
        for variables, optimizer in zip((slow, fast), optimizers, strict=True):
            optimizer.apply([of[id(v)] for v in variables], variables)
        for variable, value in zip(plain.non_trainable_variables, other, strict=True):
            variable.assign(value)
    train(ready, tmp_path / "run", ready.loop(epochs=1), epochs=1)
    for one, two in zip(ready.model.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-4, atol=2e-5)


def test_compiled_steps_end_with_the_bits_of_keras_fit(data: Dataset, tmp_path: Path) -> None:
    from workers.engine.training.loops import FitLoop

    file = stored(layered(), tmp_path)
    fitted, ready = (prepared(spec(file, freeze_to="first"), data) for _ in range(2))
    assert_equal(
        train(fitted, tmp_path / "fit", FitLoop(fitted.model, fitted.batches)),
        train(ready, tmp_path / "run", ready.loop(epochs=3)),
        rtol=1e-6,
    )


def test_trials_with_other_factors_share_a_program_and_train_like_new_models(
    data: Dataset, tmp_path: Path
) -> None:
    from workers.engine.training.model_cache import ModelCache

    file, models = stored(layered(), tmp_path), ModelCache()
    first = models.prepare(spec(file, head="new"), data, data.parts.train, name="a", seed=1)
    train(first, tmp_path / "a", first.loop(epochs=3))
    other = spec(file, {"learning_rate": 0.03}, head="new", learning_rate_factor=0.5)
    cached = models.prepare(other, data, data.parts.train, name="b", seed=2)
    assert cached.program is first.program
    built = prepared(other, data, seed=2)
    assert_equal(
        train(cached, tmp_path / "cached", cached.loop(epochs=3)),
        train(built, tmp_path / "built", built.loop(epochs=3)),
    )
    frozen = models.prepare(spec(file, head="new", freeze_to="all"), data, data.parts.train, name="c", seed=1)
    assert frozen.program is not first.program


def test_a_new_head_has_the_classes_of_the_data_and_depends_on_the_seed_alone(
    data: Dataset, tmp_path: Path
) -> None:
    file = stored(layered(outputs=7), tmp_path)
    one, same, other = (prepared(spec(file, head="new"), data, seed).model for seed in (1, 1, 2))
    assert one.output_shape == (None, 3)
    assert one.get_layer("output").activation.__name__ == "softmax"
    np.testing.assert_array_equal(one.get_weights()[-2], same.get_weights()[-2])
    assert not np.array_equal(one.get_weights()[-2], other.get_weights()[-2])
    np.testing.assert_array_equal(one.get_layer("first").kernel, other.get_layer("first").kernel)


def test_a_head_on_features_with_positions_reads_their_average(data: Dataset) -> None:
    import keras

    from workers.engine.models.head import head
    from workers.engine.models.scaling import Scaling

    features = keras.Input((5, 5, 6))
    made = keras.Model(
        features, head(features, data.profile, Scaling(np.zeros(1), np.ones(1)), taken={"output"})
    )
    assert [type(layer).__name__ for layer in made.layers] == [
        "InputLayer",
        "GlobalAveragePooling2D",
        "Dense",
    ]
    assert made.layers[-1].name == "output_1"


def test_layers_of_a_model_inside_are_frozen_by_their_path(data: Dataset, tmp_path: Path) -> None:
    file = stored(nested(), tmp_path)

    def trainable(freeze_to: str) -> set[str]:
        model = prepared(spec(file, freeze_to=freeze_to), data).model
        return {variable.path.rpartition("/")[0].rpartition("/")[2] for variable in model.trainable_variables}

    assert trainable("body/low") == {"high", "top"}
    assert trainable("body") == trainable("all") == {"top"}
    assert trainable("none") == {"low", "high", "top"}


@pytest.mark.parametrize(("args", "message"), [
    ({"freeze_to": "nowhere"}, "no layer before the head is called 'nowhere'; the last ones are norm"),
    ({"freeze_to": "output"}, "no layer before the head is called 'output'"),
])  # fmt: skip
def test_a_layer_that_is_not_there_is_refused(
    data: Dataset, tmp_path: Path, args: dict[str, Any], message: str
) -> None:
    from workers.engine.errors import BadSpec

    with pytest.raises(BadSpec, match=message):
        prepared(spec(stored(layered(), tmp_path), **args), data)


def test_a_kept_head_of_other_classes_is_refused(data: Dataset, tmp_path: Path) -> None:
    from workers.engine.errors import BadSpec

    with pytest.raises(
        BadSpec, match=r"returns \(7,\) for each row, but these data need \(3,\); use head new"
    ):
        prepared(spec(stored(layered(outputs=7), tmp_path)), data)


def test_a_file_of_another_digest_is_refused(tmp_path: Path) -> None:
    from workers.engine.errors import BadModel
    from workers.engine.models import base_models

    file = stored(layered(), tmp_path)
    with pytest.raises(BadModel, match="sha256"):
        base_models.provide(file.model_copy(update={"digest": "0" * 64}))


def test_the_trained_model_is_saved_with_its_weights_and_without_augmentation(tmp_path: Path) -> None:
    """The model is built again from the version's file, so the order of its variables has to agree."""
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
    kept = saved_variables(ready.model)
    # Keras numbers the paths of random generators, those of the augmentation included.
    assert [v.path.partition("/")[2] for v in saved.variables] == [v.path.partition("/")[2] for v in kept]
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
    made = load_model(tmp_path / "model.keras", tmp_path)
    np.testing.assert_array_equal(made.get_layer("first").kernel, layered().get_layer("first").kernel)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["trainable"] == 27
    assert {node["name"] for node in summary["graph"] if node["trainable"]} == {"output"}


def test_a_table_keeps_the_pipeline_of_the_version(tmp_path: Path) -> None:
    """New data have other values and other statistics, but each position of the input keeps its meaning."""
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
    made = tmp_path / "one" / "model.keras"
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    version = {"kind": "version", "model": "m", "number": 1, "digest": digest}
    file = BaseModelFile(path=str(made), digest=digest)
    second = task(tmp_path / "two", rows("BCDE", 500), version, base_model=file)
    train_task.run(second, RecordingReport(tmp_path / "two"))
    assert read_features(tmp_path / "two" / "model.keras") == read_features(made)
    assert base_models.features_of(second.spec.model) == read_features(made)


def trial_task(file: Any, folder: Path, base: BaseModelFile, *, seeds: tuple[int, ...], **args: Any) -> Any:
    """Return a task of one trial of a search over the factor, with an execution for each seed."""
    from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask

    row = {"name": "learning_rate_factor", "kind": "float", "min": 0.01, "max": 1.0}
    body = {**spec(base, **args).to_json(), "search": {"objective": LOSS, "space": [row]}}
    of = ExperimentSpec.model_validate(body)
    plans = tuple(ExecutionPlan(execution=seed, seed=40 + seed) for seed in seeds)
    return TrialTask(
        folder=str(folder), checkpoints=str(folder), spec=of, objective=LOSS, dataset=file, base_model=base,
        trials=(TrialPlan(number=1, values={}, spec=of, executions=plans),),
    )  # fmt: skip


@pytest.mark.parametrize("head", ["keep", "new"])
def test_executions_in_one_call_train_as_each_alone(
    blobs_file: DatasetFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    from workers.engine.compiled.timing_results import TimingResults
    from workers.engine.tasks import trial

    base = stored(layered(), tmp_path)
    monkeypatch.setattr(TimingResults, "relative_cost", lambda self, count: 0.5)
    together = trial_task(blobs_file, tmp_path / "a", base, seeds=(1, 2), freeze_to="norm", head=head)
    (found,) = trial.run(together, RecordingReport(tmp_path / "a"))["trials"]
    for each in found["executions"]:
        folder = tmp_path / f"alone-{each['execution']}"
        alone = trial_task(blobs_file, folder, base, seeds=(each["execution"],), freeze_to="norm", head=head)
        (one,) = trial.run(alone, RecordingReport(folder))["trials"]
        assert one["executions"][0]["metrics"] == pytest.approx(each["metrics"], rel=1e-4)


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
