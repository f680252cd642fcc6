"""Chooses each layer's dtype policy, the type of a run's numbers, and the loss scaling under float16."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import keras

from jobs.spec.checks import patterns
from jobs.spec.policies import policy_of_layer
from jobs.spec.sections.precision import Policy, PrecisionSpec
from workers.engine.errors import BadSpec
from workers.engine.models import keras_private
from workers.engine.models.optimizer import unwrap_optimizer

FLOAT8: Policy = "float8"
MOST_NAMED = 10
"""Layers that a message lists."""
LAST_EPOCHS = 3
"""The epochs whose skipped steps count."""
MOST_SKIPPED = 0.1
"""A larger share of skipped steps is unstable. A scale that fits is halved once in 2000 steps."""


def policy_of(layer: str, precision: PrecisionSpec) -> Policy:
    """Return the dtype policy for the layer named `layer`. The last matching override wins.

    Raises:
        BadSpec: an override's pattern is refused; older releases accepted more patterns.
    """
    try:
        return policy_of_layer(layer, precision)
    except patterns.UnsupportedPattern as error:
        raise BadSpec(str(error)) from error


def building_policy(policy: Policy) -> str:
    """Return the policy with which Keras builds a layer; see `to_float8`."""
    return "float32" if policy == FLOAT8 else policy


def policy_of_code(precision: PrecisionSpec) -> Policy | None:
    """Return the dtype policy for layers to which own code gives none; None: that of Keras."""
    return None if precision.policy == "float32" else precision.policy


def compute_in_double(is_on: bool) -> None:
    """Let this process compute in float64, or no longer.

    Without it, JAX makes float32 of every float64. Losses, metrics and optimizers have the same type.
    """
    name = "float64" if is_on else "float32"
    if jax.config.jax_enable_x64 != is_on:
        jax.config.update("jax_enable_x64", is_on)
    if keras.config.floatx() != name:
        keras.config.set_floatx(name)
        # Keras has made it of the former type.
        keras.config.set_dtype_policy(name)


def to_float8(model: Any, policy_at: Callable[[Any], str]) -> list[str]:
    """Let the dense layers of a model with the policy float8 compute in it; return their names.

    Keras 3.15 implements it for Dense and EinsumDense, not for Embedding or convolutions. Layers inside
    attention could not be loaded again.

    Args:
        model: built, and not trained.
        policy_at: returns a layer's policy.

    Raises:
        BadSpec: all layers have the policy, and none of them implements it.
    """
    inside = _inside_attention(model)
    layers = keras_private.layers_inside(model, include_self=False)
    wanted = [layer for layer in layers if policy_at(layer) == FLOAT8]
    dense = (keras.layers.Dense, keras.layers.EinsumDense)
    able = [layer for layer in wanted if type(layer) in dense and id(layer) not in inside]
    if not wanted:
        return []
    if not able:
        names = ", ".join(sorted({type(layer).__name__ for layer in wanted}))
        raise BadSpec(
            "float8 is for Dense and EinsumDense layers outside attention, and it applies to none of this "
            f"model's layers ({names}); use mixed_bfloat16"
        )
    # A version that is trained further may have it already.
    new = {id(layer) for layer in able if layer.quantization_mode != FLOAT8}
    with warnings.catch_warnings():
        # Keras warns of each layer that it skips.
        warnings.simplefilter("ignore", UserWarning)
        model.quantize(FLOAT8, filters=lambda layer: id(layer) in new)
    return [layer.name for layer in able]


def _inside_attention(model: Any) -> set[int]:
    """Return the ids of the layers that the model's attention layers contain."""
    kinds = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
    attentions = [layer for layer in keras_private.layers_inside(model) if isinstance(layer, kinds)]
    return {id(p) for layer in attentions for p in keras_private.layers_inside(layer, include_self=False)}


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


def needs_gpu_in_float16(layer: Any) -> bool:
    """Return whether a layer computes attention by JAX's own function, which refuses float16 on CPUs.

    With dropout, or if each of its calls asks for the scores, Keras computes it step by step. The calls of a
    subclassed model are unknown.
    """
    kinds = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
    if not isinstance(layer, kinds) or layer.get_config().get("dropout"):
        return False
    calls = [keras_private.arguments_of(call)[1] for call in keras_private.calls_of(layer)]
    return not calls or not all(named.get("return_attention_scores") for named in calls)


def attention_in_float16(model: Any) -> tuple[str, ...]:
    """Return the names of layers that compute attention in float16, which CPUs cannot do."""
    layers = keras_private.layers_inside(model, include_self=False)
    return tuple(p.name for p in layers if p.compute_dtype == "float16" and needs_gpu_in_float16(p))


def check_computable(model: Any) -> None:
    """Check that this process' device computes the layers of a model in their types.

    Raises:
        BadSpec: one is refused; JAX would fail in the first step with a message about its internals.
    """
    if jax.default_backend() != "cpu":
        return
    if refused := attention_in_float16(model):
        raise BadSpec(
            f"a CPU cannot compute attention in float16 ({', '.join(refused[:MOST_NAMED])}); use "
            "mixed_bfloat16, an override with float32 for these layers, or a worker with a GPU"
        )


def own_types(model: Any, policy: Policy) -> str | None:
    """Return a sentence about layers of code that do not have the experiment's policy; None if all do."""
    if policy == "float32":
        return None
    layers = [part for part in keras_private.layers_inside(model, include_self=False) if part.weights]
    leaves = [layer for layer in layers if not keras_private.has_layers(layer)]
    if policy == FLOAT8:
        others = [layer for layer in leaves if layer.quantization_mode != FLOAT8]
    else:
        others = [layer for layer in leaves if layer.dtype_policy.name != policy]
    if not others:
        return None
    names = ", ".join(f"{layer.name} ({layer.dtype_policy.name})" for layer in others[:MOST_NAMED])
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    return (
        f"The experiment's policy {policy} applies to {len(leaves) - len(others)} of {len(leaves)} layers "
        "with weights. The others have types of their own, which the code sets or which their kind needs: "
        f"{names}{more}."
    )


def instability_of_scale(history: Sequence[Mapping[str, float]], steps: int) -> str | None:
    """Return what shows that a training's loss scale does not settle; None if nothing does.

    Args:
        history: the metrics of its epochs so far.
        steps: steps in an epoch.
    """
    if not history or "loss_scale" not in history[-1]:
        return None
    if history[-1]["loss_scale"] < 1:
        return (
            "The loss scale fell below 1: gradients overflow in float16 even unscaled, and each such step "
            "was skipped. Use mixed_bfloat16 or float32, or a smaller learning rate or clipnorm."
        )
    if len(history) <= LAST_EPOCHS:
        # The scale begins high and is halved until it fits.
        return None
    skipped = history[-1]["skipped_steps"] - history[-1 - LAST_EPOCHS]["skipped_steps"]
    if skipped <= MOST_SKIPPED * LAST_EPOCHS * steps:
        return None
    return (
        f"More than {MOST_SKIPPED:.0%} of the steps in {LAST_EPOCHS} epochs were skipped, because gradients "
        "overflowed in float16: the weights did not change in them. Use mixed_bfloat16 or float32, or a "
        "smaller learning rate or clipnorm."
    )
