"""Computes how far two predictions from one model may differ by rounding alone."""

from typing import Any

import numpy as np

from workers.engine.arrays import Array
from workers.engine.models.keras_private import layers_inside

TOLERANCE = 1e-5
"""Tolerated difference relative to the largest prediction, in float32."""
TOLERANCE_HALF = 1e-2
"""For models that compute in 16 bits, whose rounding depends on how operations are fused."""


def rounding_limit(model: Any, predictions: Array) -> float:
    """Return the largest difference from the `predictions` by `model` that rounding explains."""
    # Nested models are included: an ensemble of 16-bit members has only float32 layers of its own.
    half = any("16" in str(layer.compute_dtype) for layer in layers_inside(model))
    return limit_of(predictions, half=half)


def limit_of(predictions: Array, *, half: bool) -> float:
    """Return the largest difference that rounding explains, for a model in 16 bits or not."""
    return (TOLERANCE_HALF if half else TOLERANCE) * max(1.0, float(np.abs(predictions).max()))
