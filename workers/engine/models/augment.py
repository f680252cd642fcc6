"""Builds the image augmentation layer, which a model has only while it trains.

The layer comes before the normalization and acts only in Keras' training mode. `tasks.export` builds the
model again without it, so serving, quantization and other formats never contain random layers.
"""

from collections.abc import Iterator
from typing import Any

import keras

from jobs.spec.sections.augmentation import Augmentation

NAME = "augmentation"
MODES = {"horizontal": "horizontal", "vertical": "vertical", "both": "horizontal_and_vertical"}
Range = tuple[float, float]


def augmentation(spec: Augmentation, value_range: Range) -> Any | None:
    """Return one layer with all the spec's transformations, or None if it has none.

    Args:
        spec: the transformations and their strength.
        value_range: the smallest and largest pixel value in the training part.
    """
    layers = list(_layers(spec, value_range))
    for layer in layers:
        # Keras disables this on some layers because TensorFlow cannot compile them; JAX can
        layer.supports_jit = True
    return keras.layers.Pipeline(layers, name=NAME) if layers else None


def _layers(spec: Augmentation, value_range: Range) -> Iterator[Any]:
    def common(name: str) -> dict[str, Any]:
        # float32 under any policy: the raw pixels come before the normalization
        return {"name": f"random_{name}", "dtype": "float32"}

    nearest = {"fill_mode": "nearest"}
    layers = keras.layers
    if spec.flip != "none":
        yield layers.RandomFlip(MODES[spec.flip], **common("flip"))
    if spec.rotation:
        yield layers.RandomRotation(spec.rotation, **nearest, **common("rotation"))
    if spec.zoom:
        yield layers.RandomZoom(spec.zoom, **nearest, **common("zoom"))
    if spec.translation:
        yield layers.RandomTranslation(spec.translation, spec.translation, **nearest, **common("translation"))
    if spec.contrast:
        yield layers.RandomContrast(spec.contrast, value_range=value_range, **common("contrast"))
    if spec.brightness:
        yield layers.RandomBrightness(spec.brightness, value_range=value_range, **common("brightness"))


def saved_variables(model: Any) -> list[Any]:
    """Return the variables that the saved file for `model` has: all but the augmentation's seeds."""
    not_saved = {id(v) for layer in model.layers if layer.name == NAME for v in layer.variables}
    return [variable for variable in model.variables if id(variable) not in not_saved]


def seeded_layers(model: Any) -> list[Any]:
    """Return the layers in `model` that are seeded by name, with each layer inside the augmentation."""
    return [part for layer in model.layers for part in (layer.layers if layer.name == NAME else [layer])]
