"""The layer that varies training images: part of the model while it trains, never of what is saved.

It stands before the normalization and acts only in Keras' training mode. `export` builds the model
anew without it, so serving, quantization and other formats never meet random layers.
"""

from collections.abc import Iterator
from typing import Any

import keras

from jobs.contracts.augmentation import Augmentation

NAME = "augmentation"
MODES = {"horizontal": "horizontal", "vertical": "vertical", "both": "horizontal_and_vertical"}
Range = tuple[float, float]


def augmentation(asked: Augmentation, span: Range) -> Any | None:
    """Return one layer for all that is asked for, None for nothing.

    Args:
        asked: what to vary, and how far.
        span: the smallest and largest pixel of the training part.
    """
    layers = list(_layers(asked, span))
    for layer in layers:
        layer.supports_jit = True  # Keras says no to some for TensorFlow's sake; JAX compiles them all
    return keras.layers.Pipeline(layers, name=NAME) if layers else None


def _layers(asked: Augmentation, span: Range) -> Iterator[Any]:
    def common(name: str) -> dict[str, Any]:
        # float32 under any policy: the raw pixels come before the normalization
        return {"name": f"random_{name}", "dtype": "float32"}

    moved = {"fill_mode": "nearest"}
    of = keras.layers
    if asked.flip != "none":
        yield of.RandomFlip(MODES[asked.flip], **common("flip"))
    if asked.rotation:
        yield of.RandomRotation(asked.rotation, **moved, **common("rotation"))
    if asked.zoom:
        yield of.RandomZoom(asked.zoom, **moved, **common("zoom"))
    if asked.translation:
        yield of.RandomTranslation(asked.translation, asked.translation, **moved, **common("translation"))
    if asked.contrast:
        yield of.RandomContrast(asked.contrast, value_range=span, **common("contrast"))
    if asked.brightness:
        yield of.RandomBrightness(asked.brightness, value_range=span, **common("brightness"))


def lasting(model: Any) -> list[Any]:
    """Return the variables of `model` that its saved form has: all but the augmentation's seeds."""
    passing = {id(v) for layer in model.layers if layer.name == NAME for v in layer.variables}
    return [variable for variable in model.variables if id(variable) not in passing]


def seeded_layers(model: Any) -> list[Any]:
    """Return the layers of `model` that are seeded by their names: of the augmentation, each part is."""
    return [part for layer in model.layers for part in (layer.layers if layer.name == NAME else [layer])]
