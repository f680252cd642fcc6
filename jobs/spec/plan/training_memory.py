"""Estimates the memory of one device during training, from the layers of a template."""

import math
from typing import NamedTuple

from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.layout_rules import device_shape
from jobs.spec.plan.variables import layer_policy, model_layers
from jobs.spec.sections.fit import FitSpec
from jobs.spec.templates.layers import Layer, Variable

OPTIMIZER_SLOTS = {"adam": 2, "adamw": 2, "nadam": 2, "rmsprop": 1, "sgd": 0, "adagrad": 1, "lion": 1}
"""How many optimizer variables each weight has, with default arguments."""

FLOAT8_STATE = 3 * (1 + 1024) * 4
"""Bytes that Keras adds to a float8 layer: for input, kernel and gradient a scale and 1024 largest values."""


class DeviceMemory(NamedTuple):
    """One device's estimated memory during training, in bytes."""

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        """Return the total."""
        return sum(self)


def memory_per_device(spec: ExperimentSpec, profile: Profile) -> DeviceMemory:
    """Estimate each device's memory during training.

    Weights, gradients and optimizer variables are exact. Activations are estimated as twice each layer's
    output, for the forward and the backward pass, for one device's share of the batch.
    """
    layers = model_layers(spec.model, profile)
    weights = gradients = passed_on = scales = 0
    for layer in layers:
        policy = layer_policy(layer, spec.precision)
        for variable in layer.variables:
            held = math.prod(device_shape(variable, spec.mesh)) * policy.keeps.bytes
            weights += held
            gradients += held if variable.trainable else 0
            scales += FLOAT8_STATE if policy.name == "float8" and _is_dense_kernel(layer, variable) else 0
        passed_on += math.prod(layer.output) * policy.activation_bytes
    rows = math.ceil(spec.fit.batch_size / (spec.mesh.batch_shards() if spec.mesh is not None else 1))
    # Gradients overwrite the scales of float8, which therefore have no slots.
    return DeviceMemory(
        weights + scales, gradients + scales, gradients * optimizer_slots(spec.fit), 2 * rows * passed_on
    )


def _is_dense_kernel(layer: Layer, variable: Variable) -> bool:
    """Return whether a variable is the kernel of a Dense layer, whose products may be in float8."""
    return variable.path == f"{layer.name}/kernel" and len(variable.shape) == 2


def optimizer_slots(fit: FitSpec) -> int:
    """Count the optimizer variables per weight."""
    # Keras creates the variables of the momentum only if it is not 0.
    momentum = bool(fit.optimizer_args.get("momentum")) and fit.optimizer in ("sgd", "rmsprop")
    # Each of these options, and the weights' moving average, needs one more variable per weight.
    options = ("amsgrad", "centered", "gradient_accumulation_steps")
    extra = sum(bool(fit.optimizer_args.get(name)) for name in options) + (fit.ema is not None)
    return OPTIMIZER_SLOTS[fit.optimizer] + momentum + extra
