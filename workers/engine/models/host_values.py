"""Lets Keras make the variables' initial values on the host, with NumPy.

Keras makes them on the device, with a program for each shape. XLA takes up to 0.7 CPU seconds to compile one
that draws random numbers, which is longer than a small model trains, and 0.04 s for one that fills zeros.

The distributions are Keras' own. The numbers for a seed are others than on the device, and the same in
any process and on any device.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import keras

# Registers bfloat16 and the float8 types, so that NumPy knows them by name.
import ml_dtypes  # noqa: F401
import numpy as np

from workers.engine.arrays import Array
from workers.engine.models.keras_private import (
    random_initializers,
    replace_initialization,
    set_initial_value,
)

Shape = tuple[int, ...]
TRUNCATED_AT = 2.0
"""Standard deviations of Keras' truncated normal distribution."""
DRAWN_HERE = (
    keras.initializers.Zeros,
    keras.initializers.Ones,
    keras.initializers.Orthogonal,
    keras.initializers.RandomNormal,
    keras.initializers.RandomUniform,
    keras.initializers.TruncatedNormal,
    keras.initializers.VarianceScaling,
)
"""Initializers whose values are made here; without an integer as seed, they are made on the device."""
_on_device: Any = random_initializers.random


def install() -> None:
    """Replace Keras' functions in this process, once."""
    if random_initializers.random is not _on_device:
        return
    drawn = {name: getattr(_on_device, name) for name in ("SeedGenerator", "make_default_seed")}
    random_initializers.random = SimpleNamespace(
        **drawn, normal=_normal, truncated_normal=_truncated_normal, uniform=_uniform
    )
    keras.initializers.Orthogonal.__call__ = _orthogonal(keras.initializers.Orthogonal.__call__)
    for kind, value in ((keras.initializers.Zeros, 0), (keras.initializers.Ones, 1)):
        kind.__call__ = _constant(value)
    replace_initialization(_initialize)


def _uniform(shape: Any, minval: float, maxval: float, dtype: Any, seed: Any) -> Any:
    if not isinstance(seed, int):
        return _on_device.uniform(shape, minval=minval, maxval=maxval, dtype=dtype, seed=seed)
    drawn = _generator(seed).random(tuple(shape), dtype=np.float32)
    return _put(minval + np.float32(maxval - minval) * drawn, dtype)


def _normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    if not isinstance(seed, int):
        return _on_device.normal(shape, mean=mean, stddev=stddev, dtype=dtype, seed=seed)
    drawn = _generator(seed).standard_normal(tuple(shape), dtype=np.float32)
    return _put(mean + np.float32(stddev) * drawn, dtype)


def _truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None
) -> Any:
    if not isinstance(seed, int):
        return _on_device.truncated_normal(shape, mean=mean, stddev=stddev, dtype=dtype, seed=seed)
    generator = _generator(seed)
    drawn = generator.standard_normal(tuple(shape), dtype=np.float32)
    # A twentieth of the numbers is too far away, and drawn again.
    while (far := np.abs(drawn) > TRUNCATED_AT).any():
        drawn[far] = generator.standard_normal(int(far.sum()), dtype=np.float32)
    return _put(mean + np.float32(stddev) * drawn, dtype)


def _orthogonal(on_device: Any) -> Any:
    def make(self: Any, shape: Any, dtype: Any = None) -> Any:
        if not isinstance(self.seed, int) or len(shape) < 2:
            return on_device(self, shape, dtype)
        rows, columns = int(np.prod(shape[:-1])), shape[-1]
        drawn = _generator(self.seed).standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(drawn)
        # Without the signs, some orthogonal matrices would be more probable than others.
        q *= np.sign(np.diag(r))
        return _put(self.gain * (q if rows >= columns else q.T).reshape(shape), dtype)

    return make


def _constant(value: float) -> Any:
    def make(self: Any, shape: Any, dtype: Any = None) -> Any:
        del self
        standard = keras.backend.standardize_dtype(dtype)
        # Zeros take no memory until they are read.
        filled = np.zeros(tuple(shape), standard) if not value else np.full(tuple(shape), value, standard)
        return _on_devices(filled)

    return make


def _generator(seed: int) -> np.random.Generator:
    # Keras accepts negative seeds.
    return np.random.Generator(np.random.Philox(seed % 2**64))


def _put(values: Array, dtype: Any) -> Any:
    return _on_devices(values.astype(keras.backend.standardize_dtype(dtype)))


def _on_devices(values: Array) -> Any:
    """Return values on the device; on a mesh as they are, since each device gets only its part of them."""
    return values if keras.distribution.distribution() is not None else jax.device_put(values)


def _initialize(variable: Any, initializer: Any, draw: Callable[[Any, Any], None]) -> None:
    """Give a variable its first value. On a mesh its devices get their parts of the host's values.

    Keras would put them whole on the first device, or make them whole in a program of each device.
    """
    is_drawn_here = isinstance(initializer, DRAWN_HERE) or getattr(initializer, "is_drawn_on_host", False)
    if keras.distribution.distribution() is None or not is_drawn_here:
        draw(variable, initializer)
        return
    set_initial_value(variable, initializer(variable.shape, dtype=variable.dtype))
