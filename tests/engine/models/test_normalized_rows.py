"""Own code that gets normalized rows: its saved and served version takes raw rows, as that of a template."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.checks.dry_build import DataShape
from jobs.spec.experiment import ExperimentSpec
from tests import own_code, own_models
from tests.engine.making import dataset_file
from tests.engine.models.test_own_code import IRIS, dry_built
from tests.engine.models.test_own_code_training import spec, trained
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.errors import BadSpec
from workers.engine.models.code_models.code_build import NORMALIZE
from workers.engine.models.files import load_model
from workers.engine.models.keras_private import layers_inside
from workers.engine.models.own_code.in_use import using_code
from workers.engine.models.scaling import measure_scaling
from workers.engine.training.own_code import PreparedCode, prepare_code
from workers.serving.child import model as models
from workers.serving.child.programs import Programs

NOT_COMPILED = own_code.IMPORTS + (
    '''
def build_model(hp):
    """Its outputs are the first three of the numbers that it gets, and something that is trained."""
    inputs = keras.Input((4,))
    outputs = inputs[:, :3] + layers.Dense(3, kernel_initializer="zeros")(inputs)
    return keras.Model(inputs, layers.Softmax()(outputs))
'''
)
WITH_PREPROCESS = NOT_COMPILED + "\n\ndef preprocess(x):\n    return 2 * x\n"

INDICES = own_code.IMPORTS + (
    """
def build_model(hp):
    inputs = keras.Input((4,))
    steps = layers.Embedding(4, 2, name="steps")(keras.ops.arange(4))
    x = layers.Embedding(10, 2, name="words")(inputs) + steps
    return keras.Sequential([layers.Flatten(), layers.Dense(3, activation="softmax")])(x)
"""
)
INDICES = INDICES.replace("    return keras.Sequential", "    outputs = keras.Sequential") + (
    "    return keras.Model(inputs, outputs)\n"
)
STEPS = INDICES.replace('layers.Embedding(10, 2, name="words")(inputs)', "inputs[..., None]")
FORMS: dict[str, tuple[str, str, str, str]] = {
    "compiled by the experiment": (NOT_COMPILED, "build_model", "val_accuracy", "max"),
    "compiled by the code": (own_code.SEARCH_OF_LAYERS, "build_model", "val_loss", "min"),
    "logits": (own_code.CONDITIONAL, "build_model", "val_loss", "min"),
    "a HyperModel with a fit": (own_code.TUNED_FIT, "TunedFit", "val_accuracy", "max"),
    "an own loop": (own_code.CUSTOM_LOOP, "OwnLoop", "val_my_metric", "min"),
    "a subclass": (own_models.PLAIN["models inside a model"].text, "build_model", "val_accuracy", "max"),
    "own train_step": (own_models.ONE_CALL["own train_step"].text, "build_model", "val_accuracy", "max"),
    "two inputs": (own_models.PLAIN["two inputs"].text, "build_model", "val_accuracy", "max"),
    "preprocess and train_step": (
        own_models.ONE_CALL["own train_step behind preprocess"].text, "build_model", "val_accuracy", "max",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


@pytest.fixture(scope="module")
def data(iris: DatasetFile) -> Dataset:
    return load_dataset(iris, present(ExperimentSpec.model_validate(
        {"data": {"dataset": "iris"}, "model": {"kind": "template", "template": "linear"}}
    ).data))  # fmt: skip


@contextmanager
def prepared(folder: Path, text: str, data: Dataset, **parts: Any) -> Iterator[PreparedCode]:
    code = own_code.code_in(folder / "code", text)
    of_code = spec(code, "build_model", model={"normalize": True}, **parts)
    with using_code(code, folder):
        yield prepare_code(of_code, data, data.parts.train, seed=1)


def normalized(data: Dataset) -> Any:
    x = data.x[:].astype(np.float64)
    of_training = x[data.parts.train]
    return (x - of_training.mean(axis=0)) / of_training.std(axis=0)


def softmax(values: Any) -> Any:
    exponents = np.exp(values)
    return exponents / exponents.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("text", "factor"), [(NOT_COMPILED, 1.0), (WITH_PREPROCESS, 2.0)])
def test_code_gets_rows_normalized_by_the_training_rows(
    tmp_path: Path, data: Dataset, text: str, factor: float
) -> None:
    # The layer that is trained begins with zeros.
    expected = softmax(factor * normalized(data)[:, :3])
    with prepared(tmp_path, text, data) as ready:
        np.testing.assert_allclose(ready.predict(data.x[:], 64), expected, rtol=1e-4)
        np.testing.assert_allclose(ready.model_to_save("m")(data.x[:]), expected, rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_a_version_is_served_on_raw_rows_as_its_evaluation_measured_it(
    tmp_path: Path, iris: DatasetFile, data: Dataset, form: str
) -> None:
    text, entry, metric, direction = FORMS[form]
    result, report, task = trained(
        tmp_path, text, entry, iris, metric=metric, direction=direction, model={"normalize": True}
    )
    path = report.artifacts["model"]
    assert task.code is not None
    with using_code(task.code, tmp_path):
        model = load_model(path, tmp_path)
    (layer,) = [layer for layer in layers_inside(model) if layer.name == NORMALIZE]
    # It was trained again with the validation rows.
    rows = np.concatenate([data.parts.train, data.parts.validation])
    expected = measure_scaling(*data.take(rows), data.profile)
    np.testing.assert_allclose(np.ravel(layer.mean), expected.x_mean, rtol=1e-5)
    programs = Programs(models.load(path), 64, 4)
    x, y = data.take(data.parts.test)
    served = programs.run([x[:].astype(np.float32)])[0]
    accuracy = (served.argmax(axis=1) == y).mean()
    assert accuracy == pytest.approx(result["metrics"]["test"]["accuracy"])


def test_normalization_stays_in_float32_beside_layers_of_16_bits(tmp_path: Path, data: Dataset) -> None:
    with prepared(tmp_path, NOT_COMPILED, data, precision={"policy": "mixed_float16"}) as ready:
        model = ready.model_to_save("m")
    policies = {layer.name: layer.dtype_policy.name for layer in layers_inside(model)}
    assert policies[NORMALIZE] == "float32" and "mixed_float16" in policies.values()


def test_a_layer_that_takes_the_rows_as_indices_is_named_before_any_training(
    tmp_path: Path, data: Dataset
) -> None:
    assert dry_built(tmp_path, INDICES, model={"normalize": True}).index_layers == ("words",)
    assert not dry_built(tmp_path, STEPS, model={"normalize": True}).index_layers
    refusal = r"model.normalize: the layer words takes values of the rows as indices"
    with pytest.raises(BadSpec, match=refusal), prepared(tmp_path, INDICES, data):
        pytest.fail("it was built")


def test_a_dry_build_says_that_preprocess_gets_normalized_rows(tmp_path: Path) -> None:
    note = "preprocess(x) of the code gets the rows after they are normalized"
    assert note in dry_built(tmp_path, WITH_PREPROCESS, model={"normalize": True}).notes
    assert note not in dry_built(tmp_path, WITH_PREPROCESS).notes


def test_a_dry_build_of_normalized_rows_finds_the_same_model(tmp_path: Path) -> None:
    images = DataShape(kind="image", task="multiclass", input_shape=(8, 8, 1), outputs=3)
    for shape in (IRIS, images):
        plain = dry_built(tmp_path, own_code.SEARCH_OF_LAYERS, shape=shape)
        with_layer = dry_built(tmp_path, own_code.SEARCH_OF_LAYERS, shape=shape, model={"normalize": True})
        # The memory of a row is known, so the layer's numbers are values in a build without values, too.
        assert with_layer.row_bytes and with_layer.input_shape == shape.input_shape
        others = {"row_bytes", "input_shape"}
        assert with_layer.model_dump(exclude=others) == plain.model_dump(exclude=others)
