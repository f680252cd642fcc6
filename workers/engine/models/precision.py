"""Which dtype policy each layer gets, and how the loss is scaled under float16."""

import re
from typing import Any

from jobs.contracts.precision import PrecisionSpec

OUTPUT_LAYERS = ("normalize", "output", "output_activation", "target_scale")
"""Kept in float32 unless overridden: raw inputs and final probabilities overflow or round in half types."""


def policy_of(layer: str, precision: PrecisionSpec) -> str:
    """Return the policy of the layer named `layer`; the last override that matches wins."""
    chosen = "float32" if layer in OUTPUT_LAYERS else precision.policy
    for override in precision.overrides:
        if re.search(override.match, layer):
            chosen = override.policy
    return chosen


def scale_loss(optimizer: Any, precision: PrecisionSpec) -> Any:
    """Return the optimizer with the loss scaling asked for.

    The caller compiles with `auto_scale_loss=False`: left alone, Keras wraps every optimizer under
    mixed_float16 and then throws a fixed factor away.
    """
    import keras

    if isinstance(precision.loss_scale, float | int):
        optimizer.loss_scale_factor = float(precision.loss_scale)
    elif precision.loss_scale == "dynamic" and precision.policy == "mixed_float16":
        return keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer


def moves(optimizer: Any) -> bool:
    """Say whether steps change what the optimizer shows: a scheduled learning rate, a dynamic loss scale."""
    import keras

    inner = getattr(optimizer, "inner_optimizer", optimizer)
    scheduled = isinstance(inner._learning_rate, keras.optimizers.schedules.LearningRateSchedule)
    return scheduled or hasattr(optimizer, "dynamic_scale")


def scaling_metrics(optimizer: Any, batches: int) -> dict[str, float]:
    """Return the dynamic scale and how many of `batches` steps overflowed and were skipped."""
    if not hasattr(optimizer, "dynamic_scale"):
        return {}
    applied = int(optimizer.inner_optimizer.iterations.value)
    return {"loss_scale": float(optimizer.dynamic_scale.value), "skipped_steps": float(batches - applied)}
