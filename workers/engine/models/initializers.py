"""Where kernels start: Glorot's uniform distribution, drawn on the host.

Keras draws it on the device with a program for each shape, and XLA takes 0.7 s of CPU to compile one: more
than a small model's whole training. The distribution is the same, the numbers are NumPy's.
"""

import math
from typing import Any

import keras
import numpy as np

from workers.engine.data.table import Array


class HostGlorot(keras.initializers.GlorotUniform):  # type: ignore[misc,unused-ignore]
    """Keras' `GlorotUniform` with another source of randomness. `as_keras` puts the original in its place."""

    def __call__(self, shape: tuple[int, ...], dtype: str | None = None) -> Array:
        """Return a kernel of `shape`."""
        return draw(self.seed, shape).astype(dtype or "float32")


def draw(seed: int, shape: tuple[int, ...]) -> Array:
    """Return uniform numbers within ±sqrt(6 / (inputs + outputs)), float32.

    Source: Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward neural networks,
    equation 16; for convolutions, inputs and outputs count once for each place of the window.
    """
    window = math.prod(shape[:-2])
    limit = math.sqrt(6 / (window * (shape[-2] + shape[-1])))
    uniform = np.random.Generator(np.random.Philox(seed)).random(shape, dtype=np.float32)
    return (2 * uniform - 1) * np.float32(limit)


def as_keras(model: Any) -> None:
    """Let a built model's layers name Keras' own initializer, as the saved file shall."""
    for layer in model.layers:
        if isinstance(start := getattr(layer, "kernel_initializer", None), HostGlorot):
            layer.kernel_initializer = keras.initializers.GlorotUniform(seed=start.seed)
