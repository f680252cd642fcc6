"""Lists the variables of a model, how a mesh shards them and how much memory they take, without Keras.

The plan and the engine read the same list; a test compares it with models that were built.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.fit import FitSpec
from jobs.contracts.mesh import LayoutRule, MeshSpec
from jobs.contracts.model import TemplateModel
from jobs.contracts.problems import Problem
from jobs.contracts.profile import Profile
from jobs.contracts.templates.layers import FLOAT32, Layer, Shape, Variable, dense, without_variables

SLOTS = {"adam": 2, "adamw": 2, "nadam": 2, "rmsprop": 1, "sgd": 0, "adagrad": 1, "lion": 1}
"""Optimizer variables a weight, at their default arguments."""


class DeviceMemory(NamedTuple):
    """An estimate of what one device holds while training, in bytes."""

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        """Return the sum."""
        return sum(self)


def head_units(profile: Profile) -> int:
    """Return the width of the output layer: one probability is enough for two classes."""
    return 1 if profile.task == "binary" else profile.outputs


def variables(model: TemplateModel, profile: Profile) -> list[Variable]:
    """List the variables of `model` on this data in Keras' order of layers.

    Normalization keeps its mean and variance in the layer's configuration, so it has no variables.
    The states of dropout's seed generators (8 bytes each, under paths that Keras counts up) are left out.

    Raises:
        ValueError: the template does not list its layers.
    """
    return [variable for layer in _layers(model, profile) for variable in layer.variables]


def parameters(model: TemplateModel, profile: Profile) -> int:
    """Return the number of trainable parameters."""
    return sum(math.prod(v.shape) for v in variables(model, profile) if v.trainable)


def _layers(model: TemplateModel, profile: Profile) -> Iterator[Layer]:
    if model.info.layers is None:
        raise ValueError(f"the variables of {model.template} are known only once a model was built")
    output = profile.input_shape
    yield without_variables(output)
    for layer in model.info.layers(model.resolved(), profile):
        output = layer.output
        yield layer
    yield dense("output", math.prod(output), head_units(profile))


def shard_shape(shape: Shape, axes: tuple[str | None, ...], mesh: MeshSpec) -> Shape:
    """Return the shape of one device's part; dimensions past `axes` are whole.

    Raises:
        ValueError: more axes than dimensions, or a dimension does not divide.
    """
    if len(axes) > len(shape):
        raise ValueError(f"{len(axes)} axes for a variable of shape {list(shape)}")
    sizes = [mesh.axis(axis) if axis is not None else 1 for axis in axes]
    sizes += [1] * (len(shape) - len(axes))
    for i, (dimension, size) in enumerate(zip(shape, sizes, strict=True)):
        if dimension % size:
            raise ValueError(
                f"dimension {i} of shape {list(shape)} does not divide by axis {axes[i]!r} of {size} devices"
            )
    return tuple(dimension // size for dimension, size in zip(shape, sizes, strict=True))


def rules_for(variable: Variable, mesh: MeshSpec) -> list[tuple[int, LayoutRule]]:
    """Return the rules, with their positions, whose pattern matches the whole path."""
    return [(i, rule) for i, rule in enumerate(mesh.layout) if re.fullmatch(rule.match, variable.path)]


def check_layout(mesh: MeshSpec, variables: list[Variable], batch_size: int) -> list[Problem]:
    """List what is wrong with a layout, pointers relative to the spec (`/mesh/layout/0/match`).

    Keras takes most of these silently: a rule that matches nothing replicates, one of lower rank
    shards the first dimensions; the rest fails only when a device is already taken.
    """
    problems = []
    if batch_size % mesh.batch_shards():
        message = f"batch size {batch_size} does not divide over {mesh.batch_shards()} devices"
        problems.append(Problem("/fit/batch_size", f"{message} of axis {mesh.batch_axis!r}"))
    matched: set[int] = set()
    for variable in variables:
        rules = rules_for(variable, mesh)
        matched.update(i for i, _ in rules)
        problems.extend(_variable_problems(variable, rules, mesh))
    for i, rule in enumerate(mesh.layout):
        if i not in matched:
            message = f"rule {rule.match!r} matches no variable; it must match a whole path such as "
            problems.append(Problem(f"/mesh/layout/{i}/match", message + repr(_example(variables))))
    return problems


def _example(variables: list[Variable]) -> str:
    return variables[0].path if variables else "dense_1/kernel"


def _variable_problems(
    variable: Variable, rules: list[tuple[int, LayoutRule]], mesh: MeshSpec
) -> Iterator[Problem]:
    if len(rules) > 1:
        names = " and ".join(repr(rule.match) for _, rule in rules)
        yield Problem(f"/mesh/layout/{rules[1][0]}/match", f"{names} both match {variable.path!r}")
    for i, rule in rules[:1]:
        if len(rule.axes) != len(variable.shape):
            message = f"rule {rule.match!r} has {len(rule.axes)} axes, {variable.path!r} of shape "
            yield Problem(f"/mesh/layout/{i}/axes", f"{message}{list(variable.shape)} takes one a dimension")
            continue
        try:
            shard_shape(variable.shape, rule.axes, mesh)
        except ValueError as error:
            yield Problem(f"/mesh/layout/{i}/axes", f"{variable.path!r}: {error}")


def device_shape(variable: Variable, mesh: MeshSpec | None) -> Shape:
    """Return the shape of what one device holds of `variable` under a layout without problems."""
    rules = rules_for(variable, mesh) if mesh is not None else []
    if mesh is None or not rules:
        return variable.shape
    return shard_shape(variable.shape, rules[0][1].axes, mesh)


def suggest_layout(mesh: MeshSpec, variables: list[Variable], axis: str = "model") -> tuple[LayoutRule, ...]:
    """Return rules by the rule of thumb: the last dimension of kernels and biases on `axis`.

    Layers whose last dimension does not divide stay whole on every device.
    """
    size = mesh.axis(axis)
    rules = []
    for variable in variables:
        kind = variable.path.rsplit("/", 1)[-1]
        if kind in ("kernel", "bias") and variable.shape[-1] % size == 0:
            axes = (*(None,) * (len(variable.shape) - 1), axis)
            rules.append(LayoutRule(match=re.escape(variable.path), axes=axes))
    return tuple(rules)


def memory_per_device(spec: ExperimentSpec, profile: Profile) -> DeviceMemory:
    """Estimate what training takes on each device.

    Weights, gradients and optimizer slots are exact for the templates. Activations count each
    layer's output twice (kept forward, gradient backward) for the rows that one device sees.
    """
    listed = variables(spec.model, profile)
    held = {v: math.prod(device_shape(v, spec.mesh)) * FLOAT32 for v in listed}
    weights = sum(held.values())
    gradients = sum(size for v, size in held.items() if v.trainable)
    rows = math.ceil(spec.fit.batch_size / (spec.mesh.batch_shards() if spec.mesh is not None else 1))
    outputs = sum(math.prod(layer.output) for layer in _layers(spec.model, profile))
    width = 2 if spec.precision.policy.startswith("mixed_") else FLOAT32
    return DeviceMemory(weights, gradients, gradients * slots(spec.fit), 2 * rows * outputs * width)


def slots(fit: FitSpec) -> int:
    """Return how many optimizer variables each weight gets."""
    momentum = bool(fit.optimizer_args.get("momentum")) and fit.optimizer in ("sgd", "rmsprop")
    asked = ("amsgrad", "centered", "gradient_accumulation_steps")
    extra = sum(bool(fit.optimizer_args.get(name)) for name in asked) + (fit.ema is not None)
    return SLOTS[fit.optimizer] + momentum + extra
