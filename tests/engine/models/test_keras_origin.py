"""Parts of models are told apart by the package that defines them."""

from typing import Any

import keras
import pytest

from workers.engine.models.keras_origin import is_keras_module, is_of_keras


class OwnLoss(keras.losses.MeanSquaredError):
    """A class of a user that inherits from one of Keras."""


class OwnModel(keras.Model):
    """A class of a user without layers."""


def own_loss(y: Any, y_pred: Any) -> Any:
    return y - y_pred


@pytest.mark.parametrize(
    "part",
    [
        "mse", keras.losses.mean_squared_error, keras.losses.MeanSquaredError(),
        keras.losses.MeanSquaredError, keras.layers.Dense(1), keras.Model, keras.initializers.Ones(),
    ],
    ids=repr,
)  # fmt: skip
def test_names_functions_classes_and_instances_of_keras_are_recognized(part: Any) -> None:
    assert is_of_keras(part)


@pytest.mark.parametrize("part", [own_loss, OwnLoss(), OwnLoss, OwnModel(), lambda y, y_pred: y - y_pred])
def test_what_a_user_defines_is_not_of_keras_whatever_it_inherits_from(part: Any) -> None:
    assert not is_of_keras(part)


def test_a_method_of_a_keras_loss_is_not_known_as_this_loss() -> None:
    # Its name says nothing about its targets.
    assert not is_of_keras(keras.losses.SparseCategoricalCrossentropy().call)


@pytest.mark.parametrize("name", ["keras", "keras.src.layers", "keras.ops"])
def test_a_module_of_keras_is_recognized_by_its_name(name: str) -> None:
    assert is_keras_module(name)


@pytest.mark.parametrize(
    "name", ["keras_tuner", "keras_layers.dense", "my.keras.layers", "", None, 3, ["keras"]]
)
def test_modules_with_a_similar_name_and_values_that_are_no_name_are_not_of_keras(name: Any) -> None:
    assert not is_keras_module(name)
