"""Run as a script: writes these tests' tiny Keras models below the folder given.

Version v answers [v · sum(x), v]: every answer identifies its version and its input.
"""

import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from workers.runner.libraries import import_keras

# Faster than Keras alone: without its optional imports, and with initial values that need no compilation.
import_keras()

import keras  # noqa: E402

from tests.serving.own_code import save as save_own  # noqa: E402


def telling(version: int) -> keras.Model:
    inputs = keras.Input((4,), name="x")
    layer = keras.layers.Dense(2, name="y")
    model = keras.Model(inputs, layer(inputs))
    kernel = np.zeros((4, 2), "float32")
    kernel[:, 0] = version
    layer.set_weights([kernel, np.array([0, version], "float32")])
    return model


def two_sided() -> keras.Model:
    """Has operators instead of layers, so only the keys name its outputs."""
    a, b = keras.Input((2,), name="a"), keras.Input((), name="b", dtype="int64")
    return keras.Model({"a": a, "b": b}, {"ten_a": a * 10.0, "next_b": b + 1})


def recurrent() -> keras.Model:
    words = keras.Input((None,), name="words", dtype="int32")
    hidden = keras.layers.LSTM(4, return_sequences=True)(keras.layers.Embedding(50, 4)(words))
    hidden = keras.layers.Bidirectional(keras.layers.GRU(3))(hidden)
    return keras.Model(words, keras.layers.Dense(2, name="y")(hidden))


def convolution_1d() -> keras.Model:
    inputs = keras.Input((None, 2), name="x")
    hidden = keras.layers.MaxPooling1D(2)(keras.layers.Conv1D(3, 3)(inputs))
    hidden = keras.layers.GlobalAveragePooling1D()(hidden)
    return keras.Model(inputs, keras.layers.Dense(2, name="y")(hidden))


def convolution_2d() -> keras.Model:
    inputs = keras.Input((None, None, 1), name="x")
    hidden = keras.layers.BatchNormalization()(keras.layers.Conv2D(2, 3)(inputs))
    hidden = keras.layers.GlobalMaxPooling2D()(keras.layers.SeparableConv2D(2, 2)(hidden))
    return keras.Model(inputs, keras.layers.Dense(2, name="y")(hidden))


def attention() -> keras.Model:
    inputs = keras.Input((None, 4), name="x")
    hidden = keras.layers.MultiHeadAttention(2, 2)(inputs, inputs)
    hidden = keras.layers.LayerNormalization()(hidden + inputs)
    return keras.Model(
        inputs, {"mean": keras.layers.GlobalAveragePooling1D(name="mean")(hidden), "all": hidden}
    )


def normalized() -> keras.Model:
    inputs = keras.Input((6,), name="x")
    hidden = keras.layers.GroupNormalization(2)(keras.layers.BatchNormalization()(inputs))
    hidden = keras.layers.Dropout(0.5)(keras.layers.UnitNormalization()(hidden))
    return keras.Model(inputs, keras.layers.Dense(1, name="y")(hidden))


def sales() -> keras.Model:
    """Takes the index of a store and an amount; an index beyond its embedding gives NaN."""
    inputs = keras.Input((2,), name="input")
    store = keras.layers.Embedding(8, 4, embeddings_initializer="random_normal")(
        keras.ops.cast(inputs[:, 0], "int32")
    )
    joined = keras.layers.Concatenate()([store, inputs[:, 1:]])
    return keras.Model(inputs, keras.layers.Dense(3, activation="softmax", name="output")(joined))


def folded() -> keras.Model:
    """Accepts any length by its signature, but computes only length 2."""
    inputs = keras.Input((None, 4), name="x")
    return keras.Model(inputs, keras.layers.Dense(1, name="y")(keras.layers.Reshape((8,))(inputs)))


def wide(units: int = 512) -> keras.Model:
    """By default it has 2 MiB of weights; one layer's result depends on the training's statistics."""
    keras.utils.set_random_seed(5)
    inputs = hidden = keras.Input((4,), name="x")
    for i in (1, 2, 3):
        hidden = keras.layers.Dense(units, activation="relu", name=f"dense_{i}")(hidden)
    hidden = keras.layers.BatchNormalization(name="norm")(hidden)
    return keras.Model(inputs, keras.layers.Dense(3, name="output")(hidden))


def main(folder: Path) -> None:
    wide().save(folder / "wide.keras")
    wide(64).save(folder / "narrow.keras")
    for build in (recurrent, convolution_1d, convolution_2d, attention, normalized, folded, sales):
        build().save(folder / f"{build.__name__}.keras")
    for version in (1, 2):
        telling(version).save(folder / f"telling-{version}.keras")
    two_sided().save(folder / "two_sided.keras")
    save_own(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
