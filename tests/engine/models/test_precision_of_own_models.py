"""Precision of models that users bring: versions that are trained further, and own code."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from jobs.messages.task import BaseModelFile, DatasetFile
from jobs.spec.experiment import ExperimentSpec
from tests import own_code
from tests.engine.models.test_fine_tuning import blobs_file, data, layered, prepared, spec, stored  # noqa: F401
from workers.engine.data.dataset import Dataset
from workers.engine.models.own_code.in_use import using_code
from workers.engine.models.precision import compute_in_double, own_types

CODE = """
import keras

def build_model(hp):
    return keras.Sequential([
        keras.layers.Dense(8, activation="relu", name="hidden"),
        keras.layers.Dense(3, activation="softmax", dtype="float32", name="last"),
    ])
"""
COMPILED = (
    CODE.replace("return keras.Sequential", "model = keras.Sequential")
    + """
    model.compile("adam", "sparse_categorical_crossentropy")
    return model
"""
)
WITH_POLICY = "import keras\nkeras.config.set_dtype_policy('mixed_bfloat16')\n" + CODE


def precise(file: BaseModelFile, **precision: Any) -> ExperimentSpec:
    return ExperimentSpec.model_validate({**spec(file).to_json(), "precision": precision})


def policies(model: Any) -> dict[str, str]:
    return {layer.name: layer.dtype_policy.name for layer in model.layers if layer.weights}


def test_a_version_is_trained_further_in_the_chosen_precision(tmp_path: Path, data: Dataset) -> None:  # noqa: F811
    file = stored(layered(), tmp_path)
    ready = prepared(precise(file, policy="mixed_float16"), data)
    found = policies(ready.model)
    assert found["first"] == found["second"] == "mixed_float16" and found["output"] == "float32"
    assert type(ready.model.optimizer).__name__ == "LossScaleOptimizer"
    np.testing.assert_array_equal(
        ready.model.get_layer("first").kernel.value, layered().get_layer("first").kernel.value
    )


def test_layers_keep_the_policy_with_which_they_were_saved_unless_one_is_chosen(
    tmp_path: Path,
    data: Dataset,  # noqa: F811
) -> None:
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        file = stored(layered(), tmp_path)
    finally:
        keras.config.set_dtype_policy("float32")
    assert policies(prepared(spec(file), data).model)["first"] == "mixed_bfloat16"
    changed = precise(file, overrides=[{"match": "first", "policy": "float32"}])
    assert policies(prepared(changed, data).model)["first"] == "float32"


def test_a_version_that_was_cast_to_16_bits_is_trained_further_in_float32(
    tmp_path: Path,
    data: Dataset,  # noqa: F811
) -> None:
    keras.config.set_dtype_policy("float16")
    try:
        file = stored(layered(), tmp_path)
    finally:
        keras.config.set_dtype_policy("float32")
    model = prepared(spec(file), data).model
    assert set(policies(model).values()) == {"float32"}
    assert {str(variable.dtype) for variable in model.trainable_variables} == {"float32"}


def test_float64_and_float8_apply_to_versions_too(tmp_path: Path, data: Dataset) -> None:  # noqa: F811
    file = stored(layered(), tmp_path)
    compute_in_double(True)
    try:
        model = prepared(precise(file, policy="float64"), data).model
        assert {str(variable.value.dtype) for variable in model.trainable_variables} == {"float64"}
        assert model.outputs[0].dtype == "float64"
    finally:
        compute_in_double(False)
    model = prepared(precise(file, policy="float8"), data).model
    assert model.get_layer("first").quantization_mode == "float8"
    assert model.get_layer("output").quantization_mode is None


def test_a_new_head_has_the_policy_of_an_output(tmp_path: Path, data: Dataset) -> None:  # noqa: F811
    file = stored(layered(), tmp_path)
    body = {**spec(file, head="new").to_json(), "precision": {"policy": "mixed_bfloat16"}}
    assert policies(prepared(ExperimentSpec.model_validate(body), data).model)["output"] == "float32"


@pytest.fixture
def of_code(tmp_path: Path, data: Dataset) -> Iterator[Callable[..., Any]]:  # noqa: F811
    @contextmanager
    def built(text: str, **precision: Any) -> Iterator[Any]:
        code = own_code.code_in(tmp_path / "code", text)
        model = {"kind": "code", "digest": code.digest, "entry": "build_model"}
        body = {"data": {"dataset": "b"}, "model": model, "fit": {"batch_size": 16}, "precision": precision}
        with using_code(code, tmp_path):
            yield prepared(ExperimentSpec.model_validate(body), data)

    yield built


def test_a_policy_applies_to_layers_to_which_code_gives_none_and_others_are_named(of_code: Any) -> None:
    with of_code(CODE, policy="mixed_float16") as ready:
        assert policies(ready.build.code_model) == {"hidden": "mixed_float16", "last": "float32"}
        assert type(ready.model.optimizer).__name__ == "LossScaleOptimizer"
        note = own_types(ready.build.code_model, "mixed_float16")
    assert note is not None and "applies to 1 of 2 layers" in note and "last (float32)" in note
    assert keras.config.dtype_policy().name == "float32"


def test_a_model_that_code_compiles_has_its_loss_scaled_by_keras(of_code: Any) -> None:
    with of_code(COMPILED, policy="mixed_float16") as ready:
        assert type(ready.model.optimizer).__name__ == "LossScaleOptimizer"


def test_the_policy_that_code_sets_wins_and_is_named(of_code: Any) -> None:
    with of_code(WITH_POLICY, policy="mixed_float16") as ready:
        assert policies(ready.build.code_model)["hidden"] == "mixed_bfloat16"
        assert "hidden (mixed_bfloat16)" in str(own_types(ready.build.code_model, "mixed_float16"))


def test_the_default_leaves_code_as_it_is_and_names_nothing(of_code: Any) -> None:
    with of_code(WITH_POLICY) as ready:
        assert policies(ready.build.code_model)["hidden"] == "mixed_bfloat16"
        assert own_types(ready.build.code_model, "float32") is None


def test_float8_and_float64_apply_to_code_too(of_code: Any) -> None:
    with of_code(CODE, policy="float8") as ready:
        layers = {layer.name: layer.quantization_mode for layer in ready.build.code_model.layers}
        assert layers == {"hidden": "float8", "last": None}
    compute_in_double(True)
    try:
        with of_code(CODE, policy="float64") as ready:
            kernel = ready.build.code_model.get_layer("hidden").kernel.value
            assert str(kernel.dtype) == "float64"
    finally:
        compute_in_double(False)


__all__ = ["DatasetFile", "blobs_file"]
