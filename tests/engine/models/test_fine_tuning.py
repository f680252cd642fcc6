"""Fine-tuning: stored weights, frozen layers, a kept or new head, and two learning rates."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import BaseModelFile, DatasetFile
from jobs.spec.experiment import ExperimentSpec
from tests.engine.compiled.test_program import assert_equal, train
from tests.engine.helpers import blobs, profiled
from workers.engine.data.dataset import Dataset

LOSS = {"metric": "val_loss", "direction": "min"}


FIT = {"epochs": 3, "batch_size": 16, "learning_rate": 0.01, "seed": 3}


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
    """Save a model, make its file available to models in this process, and return it."""
    from workers.engine.models import base_models
    from workers.engine.models.files import save_model

    folder.mkdir(parents=True, exist_ok=True)
    save_model(model, folder / "base.keras")
    digest = hashlib.sha256((folder / "base.keras").read_bytes()).hexdigest()
    file = BaseModelFile(path=str(folder / "base.keras"), digest=digest)
    base_models.provide(file)
    return file


def layered(outputs: int = 3) -> Any:
    """Return dense → batch normalization → dense → head, with statistics unlike a new model's."""
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


@pytest.mark.parametrize("fit", [{"optimizer": "sgd", "optimizer_args": {"momentum": 0.9}}])
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
        (_, other), gradients_of_parts = gradients(values, other, x, y, weights)
        of = {id(v): g for v, g in zip(plain.trainable_variables, gradients_of_parts, strict=True)}
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
    headed = keras.Model(
        features, head(features, data.profile, Scaling(np.zeros(1), np.ones(1)), taken={"output"})
    )
    assert [type(layer).__name__ for layer in headed.layers] == [
        "InputLayer",
        "GlobalAveragePooling2D",
        "Dense",
    ]
    assert headed.layers[-1].name == "output_1"


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
