"""Outputs keep the names that their model gives them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest

from workers.engine.models.build import signature_of
from workers.engine.models.files import load_model, save_model
from workers.engine.models.outputs import output_names


def dense(name: str | None = None) -> Any:
    return keras.layers.Dense(1, name=name)


def built_with(outputs: Callable[[Any], Any]) -> Any:
    inputs = keras.Input((2,))
    return keras.Model(inputs, outputs(inputs))


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        (lambda x: {"score": dense()(x), "next": dense("n")(x)}, ["next", "score"]),
        (lambda x: {"score": dense()(x)}, ["score"]),
        (lambda x: [dense("score")(x), dense("next")(x)], ["score", "next"]),
        (lambda x: {"a": {"b": dense()(x)}, "c": dense()(x)}, ["a.b", "c"]),
        (lambda x: keras.ops.split(x * 2, 2, axis=-1), ["split_0", "split_1"]),
        (lambda x: dense("score")(x), ["score"]),
        (lambda x: dense()(x), ["output"]),
        (lambda x: dense("target_scale")(x), ["output"]),
        (lambda x: x + 1, ["output"]),
    ],
)
def test_outputs_are_named_by_key_or_layer_before_and_after_saving(
    tmp_path: Path, outputs: Any, names: list[str]
) -> None:
    model = built_with(outputs)
    if names == ["split_0", "split_1"]:  # Keras counts the operations of this process
        names = [f"{model.outputs[0]._keras_history[0].name}_{number}" for number in (0, 1)]
    assert output_names(model) == names
    save_model(model, tmp_path / "m.keras")
    signature = signature_of(load_model(tmp_path / "m.keras", tmp_path))
    assert [tensor.name for tensor in signature.outputs] == names


def test_names_that_outputs_share_are_numbered_without_taking_another_name() -> None:
    def outputs(x: Any) -> list[Any]:
        halves = keras.layers.Identity(name="half")(keras.ops.split(x, 2, axis=-1))
        return [*halves, dense("half_0")(x)]

    assert output_names(built_with(outputs)) == ["half_1", "half_2", "half_0"]


def test_a_sequential_model_has_one_output() -> None:
    assert output_names(keras.Sequential([keras.Input((2,)), dense("score")])) == ["score"]
    assert output_names(keras.Sequential([keras.Input((2,)), dense()])) == ["output"]
