"""Code of users for tests: layers, and model files that cannot be loaded without them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import keras

SCALED = '''
import keras


@keras.saving.register_keras_serializable("own")
class Scaled(keras.layers.Layer):
    """Multiplies its input."""

    def call(self, x):
        return x * 2.0
'''


def scaled(y_true: Any, y_pred: Any) -> Any:
    """Return a loss: a function that a file names in its compile config."""
    return keras.ops.mean((y_true - y_pred) ** 2)


@contextmanager
def defined(text: str) -> Iterator[ModuleType]:
    """Execute code as a module named `model`, as a training does; leave nothing of it registered."""
    before = dict(keras.saving.get_custom_objects())
    module = ModuleType("model")
    sys.modules["model"] = module
    try:
        exec(compile(text, "model.py", "exec"), vars(module))
        yield module
    finally:
        del sys.modules["model"]
        keras.saving.get_custom_objects().clear()
        keras.saving.get_custom_objects().update(before)


def save_with_layer(
    folder: Path, text: str, name: str, shape: tuple[int, ...] = (4,), units: int = 2
) -> Path:
    """Save a model with the code's layer `name` before its output. Return the file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "own.keras"
    # By chance, its weights may be better than a baseline.
    keras.utils.set_random_seed(1)
    with defined(text) as module:
        inputs = keras.Input(shape, name="input")
        x = getattr(module, name)()(inputs)
        x = keras.layers.Flatten()(x) if len(shape) > 1 else x
        keras.Model(inputs, keras.layers.Dense(units, activation="softmax", name="output")(x)).save(path)
    return path
