"""A loss of the code gets class numbers, or one number for each class, as it takes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.models.test_own_code import dry_built

IMPORTS = "import keras\nfrom keras import layers, ops\n"
MODEL = """
def build_model(hp):
    model = keras.Sequential([layers.Dense(hp.Int("units", 4, 8)), layers.Dense(3, activation="softmax")])
    model.compile("adam", {})
    return model
"""
SQUARES = "def own(y, p):\n    return ops.mean(ops.square(y - p), axis=-1)\n"
SQUARES_OF_CLASS = (
    "class Own(keras.losses.Loss):\n    def call(self, y, p):\n        return ops.sum(ops.abs(y - p), -1)\n"
)
ENTROPY = "def own(y, p):\n    return keras.losses.categorical_crossentropy(y, p)\n"
SELECTED = (
    "def own(y, p):\n    y = ops.reshape(ops.cast(y, 'int32'), (-1, 1))\n"
    "    return -ops.log(ops.take_along_axis(p, y, axis=-1))\n"
)
SELECTED_BY_COLUMN = (
    "def own(y, p):\n    return -ops.log(ops.take_along_axis(p, ops.cast(y, 'int32'), axis=-1))\n"
)
SPARSE_OF_CLASS = (
    "class Own(keras.losses.Loss):\n    def call(self, y, p):\n"
    "        return keras.losses.sparse_categorical_crossentropy(y, p) ** 2\n"
)


@pytest.mark.parametrize(
    ("code", "loss", "one_hot"),
    [
        (SQUARES, "own", True),
        (SQUARES_OF_CLASS, "Own()", True),
        (ENTROPY, "own", True),
        (SELECTED, "own", False),
        (SELECTED_BY_COLUMN, "own", False),
        (SPARSE_OF_CLASS, "Own()", False),
    ],
)
def test_a_loss_gets_one_number_for_each_class_if_it_compares_each_output(
    tmp_path: Path, code: str, loss: str, one_hot: bool
) -> None:
    assert dry_built(tmp_path, IMPORTS + code + MODEL.format(loss)).one_hot is one_hot


@pytest.mark.parametrize("width", [2, 3, 4, 10, 16])
def test_losses_of_keras_are_told_apart_for_any_number_of_classes(width: int) -> None:
    import keras

    from workers.engine.models.code_models.loss_targets import targets_of

    losses = keras.losses
    for_each: list[Callable[..., Any]] = [
        losses.mean_squared_error, losses.MeanAbsoluteError(), losses.CategoricalCrossentropy(),
        losses.binary_crossentropy, losses.CategoricalFocalCrossentropy(), losses.Huber(),
    ]  # fmt: skip
    by_number = [losses.sparse_categorical_crossentropy, losses.SparseCategoricalCrossentropy()]
    assert [targets_of(loss, width) for loss in for_each] == ["one_hot"] * 6
    assert [targets_of(loss, width) for loss in by_number] == ["numbers"] * 2
