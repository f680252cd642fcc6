"""Messages of Keras become plain sentences: no colours, no configs, and the cause of all."""

import keras
import numpy as np
import pytest

from workers.model_process.library_messages import plain_message


def message_of(act: object) -> str:
    with pytest.raises(Exception) as failure:
        act()  # type: ignore[operator]
    return plain_message(failure.value)


class Squared(keras.layers.Layer):
    def call(self, x: object) -> object:
        raise ValueError("the rows are odd")


def test_the_cause_of_a_layers_failure_is_left_without_colours_and_arguments() -> None:
    message = message_of(lambda: Squared()(np.ones((2, 3))))
    assert "the rows are odd" in message
    assert "\x1b" not in message and "Arguments received" not in message


def test_the_config_of_an_unknown_class_is_left_out() -> None:
    config = keras.saving.serialize_keras_object(Squared(name="sq"))
    assert (
        message_of(lambda: keras.saving.deserialize_keras_object(config))
        == "Could not locate class 'Squared'."
    )


def test_the_cause_comes_without_the_configs_around_it() -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    config = keras.saving.serialize_keras_object(model)
    config["config"]["layers"][1]["config"]["nonsense"] = 1
    message = message_of(lambda: keras.saving.deserialize_keras_object(config))
    assert "nonsense" in message and "config=" not in message and "{'module'" not in message


def test_an_exception_without_a_message_is_named() -> None:
    assert plain_message(AssertionError()) == "AssertionError without a message"
