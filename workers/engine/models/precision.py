"""Chooses each layer's dtype policy and the loss scaling under float16."""

from typing import Any

import keras

from jobs.spec.checks import patterns
from jobs.spec.sections.precision import PrecisionSpec
from workers.engine.errors import BadSpec
from workers.engine.models import keras_private
from workers.engine.models.optimizer import unwrap_optimizer

OUTPUT_LAYERS = ("normalize", "output", "output_activation", "target_scale")
"""These stay in float32 unless overridden: in 16 bits raw inputs overflow and probabilities are rounded."""


def policy_of(layer: str, precision: PrecisionSpec) -> str:
    """Return the dtype policy for the layer named `layer`. The last matching override wins.

    Raises:
        BadSpec: an override's pattern is refused; older releases accepted more patterns.
    """
    chosen = "float32" if layer in OUTPUT_LAYERS else precision.policy
    for override in precision.overrides:
        try:
            if patterns.found_in(override.match, layer):
                chosen = override.policy
        except patterns.UnsupportedPattern as error:
            raise BadSpec(str(error)) from error
    return chosen


def scale_loss(optimizer: Any, precision: PrecisionSpec, model: Any = None) -> Any:
    """Return the optimizer with the spec's loss scaling.

    Dynamic scaling is for layers that compute in float16, whether the policy, an override, a saved version or
    code chose that.

    The caller must compile with `auto_scale_loss=False`. Otherwise Keras wraps every optimizer under
    mixed_float16 and ignores a fixed factor.
    """
    if isinstance(precision.loss_scale, float | int):
        optimizer.loss_scale_factor = float(precision.loss_scale)
    elif precision.loss_scale == "dynamic" and (
        precision.policy == "mixed_float16" or (model is not None and computes_in_float16(model))
    ):
        return keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer


def computes_in_float16(model: Any) -> bool:
    """Return whether any layer of a model computes in float16."""
    layers = keras_private.layers_inside(model, include_self=False)
    return any(layer.compute_dtype == "float16" for layer in layers)


def note_on_scale(model: Any) -> list[str]:
    """Return a sentence if a model that code compiles computes in float16 without a scaled loss."""
    optimizer = model.optimizer
    is_scaled = (
        hasattr(optimizer, "dynamic_scale") or getattr(optimizer, "loss_scale_factor", None) is not None
    )
    if is_scaled or not computes_in_float16(model):
        return []
    return [
        "layers compute in float16, but as in Keras the loss is not scaled, so small gradients become 0: "
        "compile with keras.optimizers.LossScaleOptimizer, or set the policy by keras.config.set_dtype_policy"
    ]


def has_changing_metrics(optimizer: Any) -> bool:
    """Return whether steps change the learning rate (a schedule) or the loss scale (dynamic scaling)."""
    inner = unwrap_optimizer(optimizer)
    rate = keras_private.learning_rate_of(inner)
    scheduled = isinstance(rate, keras.optimizers.schedules.LearningRateSchedule)
    return scheduled or hasattr(optimizer, "dynamic_scale")


def scaling_metrics(optimizer: Any, steps: int) -> dict[str, float]:
    """Return the dynamic loss scale, if any, and how many of `steps` steps overflowed and were skipped."""
    if not hasattr(optimizer, "dynamic_scale"):
        return {}
    # The inner optimizer counts only the steps that it applied.
    applied = int(optimizer.inner_optimizer.iterations.value)
    return {"loss_scale": float(optimizer.dynamic_scale.value), "skipped_steps": float(steps - applied)}
