"""Run as a script: writes the tiny Keras models of these tests below the folder given.

Version v answers [v · sum(x), v]: every answer identifies its version and its input.
"""

import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np


def telling(version: int) -> keras.Model:
    inputs = keras.Input((4,), name="x")
    layer = keras.layers.Dense(2, name="y")
    model = keras.Model(inputs, layer(inputs))
    kernel = np.zeros((4, 2), "float32")
    kernel[:, 0] = version
    layer.set_weights([kernel, np.array([0, version], "float32")])
    return model


def two_sided() -> keras.Model:
    a, b = keras.Input((2,), name="a"), keras.Input((), name="b", dtype="int32")
    ten_a = keras.layers.Rescaling(10.0, name="ten_a")(a)
    next_b = keras.layers.Rescaling(1.0, offset=1.0, name="next_b")(b)
    return keras.Model({"a": a, "b": b}, {"ten_a": ten_a, "next_b": next_b})


def main(folder: Path) -> None:
    for version in (1, 2):
        telling(version).save(folder / f"telling-{version}.keras")
    two_sided().save(folder / "two-sided.keras")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
