"""Computes a model's variables, their shards on a mesh and the memory they need, without Keras.

The plan and the engine use this list. A test compares it with built models.
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from pydantic import ValidationError

from jobs.spec.checks import patterns
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.policies import POLICIES, PolicyInfo, policy_of_layer
from jobs.spec.problems import Problem
from jobs.spec.sections.fit import FitSpec
from jobs.spec.sections.mesh import LayoutRule, MeshSpec
from jobs.spec.sections.model import Model
from jobs.spec.sections.precision import PrecisionSpec
from jobs.spec.templates.columns import column_layers
from jobs.spec.templates.layers import (
    Layer,
    Shape,
    Variable,
    dense,
    without_variables,
)

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


def head_units(profile: Profile) -> int:
    """Return the output layer's width; two classes need only one probability."""
    return 1 if profile.task == "binary" else profile.outputs


def variables(model: Model, profile: Profile) -> list[Variable]:
    """Return a model's variables for given data, in Keras' layer order.

    The normalization layer has no variables, because its configuration contains mean and variance. Dropout's
    seed generators (8 bytes each, with numbered paths) are omitted.

    Raises:
        ValueError: the template has no `layers` function.
    """
    return [variable for layer in _layers(model, profile) for variable in layer.variables]


def parameters(model: Model, profile: Profile) -> int:
    """Count the trainable parameters."""
    return sum(math.prod(v.shape) for v in variables(model, profile) if v.trainable)


def layer_names(model: Model, profile: Profile) -> set[str]:
    """Return a model's layer names for given data, which precision overrides match.

    Raises:
        ValueError: the template has no `layers` function.
    """
    # These change only a value's form, so the layer list leaves them out.
    more = {"flatten", "target_scale"} if profile.task == "regression" else {"flatten"}
    return {layer.name for layer in _layers(model, profile)} | more


def model_layers(model: Model, profile: Profile) -> list[Layer]:
    """Return a model's layers for given data, in Keras' order.

    Raises:
        ValueError: the template has no `layers` function.
    """
    return list(_layers(model, profile))


def _layers(model: Model, profile: Profile) -> Iterator[Layer]:
    if model.info.layers is None:
        raise ValueError(f"the variables of {model.info.name} are unknown before the model is built")
    output = profile.input_shape
    yield without_variables("normalize", output)
    # A template that reads the words of texts itself places the other columns behind them.
    if not model.info.reads_tokens and (columns := column_layers(profile, tokens=True)):
        yield from columns
        output = columns[-1].output
        profile = profile.model_copy(update={"input_shape": output})
    for layer in model.info.layers(model.resolved(), profile):
        output = layer.output
        yield layer
    yield dense("output", math.prod(output), head_units(profile))


def shard_shape(shape: Shape, axes: tuple[str | None, ...], mesh: MeshSpec) -> Shape:
    """Compute the shape of one device's shard; dimensions without an axis are not divided.

    Raises:
        ValueError: there are more axes than dimensions, or a dimension is not divisible.
    """
    if len(axes) > len(shape):
        raise ValueError(f"{len(axes)} axes for a variable of shape {list(shape)}")
    sizes = [mesh.axis(axis) if axis is not None else 1 for axis in axes]
    sizes += [1] * (len(shape) - len(axes))
    for i, (dimension, size) in enumerate(zip(shape, sizes, strict=True)):
        if dimension % size:
            raise ValueError(
                f"dimension {i} of shape {list(shape)} is not divisible by axis {axes[i]!r} of {size} devices"
            )
    return tuple(dimension // size for dimension, size in zip(shape, sizes, strict=True))


def rules_for(variable: Variable, mesh: MeshSpec) -> list[tuple[int, LayoutRule]]:
    """Return the rules whose pattern matches the variable's entire path, with their indices.

    The first one applies. A rule whose pattern is refused matches nothing; see `pattern_problems`.
    """
    rule_indices = mesh.matched.get(variable.path)
    if rule_indices is None:
        # A plan asks for the same paths with hundreds of searched values.
        rule_indices = mesh.matched[variable.path] = [
            i for i, rule in enumerate(mesh.layout) if _is_matched(rule.match, variable.path)
        ]
    return [(i, mesh.layout[i]) for i in rule_indices]


def _is_matched(pattern: str, path: str) -> bool:
    return patterns.refusal(pattern) is None and patterns.matches_all_of(pattern, path)


def pattern_problems(mesh: MeshSpec) -> list[Problem]:
    """Return the rules whose pattern is refused."""
    reasons = ((i, patterns.refusal(rule.match)) for i, rule in enumerate(mesh.layout))
    return [Problem(f"/mesh/layout/{i}/match", reason) for i, reason in reasons if reason is not None]


def check_layout(mesh: MeshSpec, variables: list[Variable], batch_size: int) -> list[Problem]:
    """Return a layout's problems, with pointers into the spec such as `/mesh/layout/0/match`.

    The first rule that matches a variable applies, and later ones are ignored for it; see `shadowed_rules`.
    Keras reports none of these problems early. It ignores a rule that matches nothing, applies a rule with
    too few axes to the first dimensions, and fails for the others after the devices are allocated.
    """
    problems = [*pattern_problems(mesh), *_axis_problems(mesh)]
    if batch_size % mesh.batch_shards():
        message = f"batch size {batch_size} is not divisible by the {mesh.batch_shards()} devices"
        problems.append(Problem("/fit/batch_size", f"{message} of axis {mesh.batch_axis!r}"))
    for variable in variables:
        problems.extend(_variable_problems(variable, rules_for(variable, mesh), mesh))
    return [*problems, *unmatched_rules(mesh, variables)]


def unmatched_rules(mesh: MeshSpec, variables: Sequence[Variable]) -> list[Problem]:
    """Return the rules that match none of these variables; refused patterns are reported elsewhere."""
    matched = {i for variable in variables for i, _ in rules_for(variable, mesh)}
    example = repr(variables[0].path if variables else "dense_1/kernel")
    return [
        Problem(
            f"/mesh/layout/{i}/match",
            f"rule {rule.match!r} matches no variable; it must match an entire path, such as {example}",
        )
        for i, rule in enumerate(mesh.layout)
        if i not in matched and patterns.refusal(rule.match) is None
    ]


def shadowed_rules(mesh: MeshSpec, variables: Sequence[Variable]) -> list[Problem]:
    """Return a note for each rule that an earlier one precedes at some variable; the earlier one applies.

    Notes are no problems. A rule that applies to no variable at all is named as such.
    """
    applied: set[int] = set()
    ignored: dict[int, tuple[int, str]] = {}
    for variable in variables:
        for position, (i, _) in enumerate(matching := rules_for(variable, mesh)):
            if position == 0:
                applied.add(i)
            else:
                ignored.setdefault(i, (matching[0][0], variable.path))
    return [_shadow_note(mesh, i, *ignored[i], is_useless=i not in applied) for i in sorted(ignored)]


def _shadow_note(mesh: MeshSpec, rule: int, first: int, path: str, *, is_useless: bool) -> Problem:
    names = f"rule {first + 1} ({mesh.layout[first].match})", f"rule {rule + 1} ({mesh.layout[rule].match})"
    message = f"{names[0]} and {names[1]} both match {path!r}; the first one applies"
    if is_useless:
        message += f", so {names[1]} applies to no variable: move it up, or leave it out"
    return Problem(f"/mesh/layout/{rule}/match", message)


def _axis_problems(mesh: MeshSpec) -> Iterator[Problem]:
    for i, rule in enumerate(mesh.layout):
        named = [axis for axis in rule.axes if axis is not None]
        if repeated := sorted({axis for axis in named if named.count(axis) > 1}):
            yield Problem(
                f"/mesh/layout/{i}/axes",
                f"rule {rule.match!r} names the axis {repeated[0]!r} twice; a variable is divided along an "
                "axis once, so give the other dimension another axis or none",
            )


def _variable_problems(
    variable: Variable, rules: list[tuple[int, LayoutRule]], mesh: MeshSpec
) -> Iterator[Problem]:
    for i, rule in rules[:1]:
        if len(rule.axes) != len(variable.shape):
            message = f"rule {rule.match!r} has {len(rule.axes)} axes, {variable.path!r} of shape "
            yield Problem(
                f"/mesh/layout/{i}/axes", f"{message}{list(variable.shape)} needs one axis per dimension"
            )
            continue
        try:
            shard_shape(variable.shape, rule.axes, mesh)
        except ValueError as error:
            yield Problem(f"/mesh/layout/{i}/axes", f"{variable.path!r}: {error}")


def device_shape(variable: Variable, mesh: MeshSpec | None) -> Shape:
    """Compute the shape of one device's shard under a valid layout.

    Raises:
        ValueError: the layout does not divide the variable.
    """
    rules = rules_for(variable, mesh) if mesh is not None else []
    if mesh is None or not rules:
        return variable.shape
    return shard_shape(variable.shape, rules[0][1].axes, mesh)


def suggest_layout(mesh: MeshSpec, variables: list[Variable], axis: str = "model") -> tuple[LayoutRule, ...]:
    """Return rules that shard kernels and biases over `axis`, by their last dimension.

    Variables whose last dimension is not divisible are replicated, as those that no rule can name.
    """
    size = mesh.axis(axis)
    rules = []
    for variable in variables:
        kind = variable.path.rsplit("/", 1)[-1]
        if kind in ("kernel", "bias") and variable.shape and variable.shape[-1] % size == 0:
            axes = (*(None,) * (len(variable.shape) - 1), axis)
            # Own code may nest layers deeply, or have tensors of many dimensions.
            with suppress(ValidationError):
                # A path may contain characters that have a meaning in a pattern.
                rules.append(LayoutRule(match=re.escape(variable.path), axes=axes))
    return tuple(rules)


def memory_per_device(spec: ExperimentSpec, profile: Profile) -> DeviceMemory:
    """Estimate each device's memory during training.

    Weights, gradients and optimizer variables are exact. Activations are estimated as twice each layer's
    output, for the forward and the backward pass, for one device's share of the batch.
    """
    layers = list(_layers(spec.model, profile))
    weights = gradients = passed_on = scales = 0
    for layer in layers:
        policy = _policy_of(layer, spec.precision)
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


def typed_variables(spec: ExperimentSpec, profile: Profile) -> list[Variable]:
    """Return `variables` with the types that the dtype policy of each layer gives them."""
    return [
        variable._replace(dtype=_policy_of(layer, spec.precision).keeps.name)
        for layer in _layers(spec.model, profile)
        for variable in layer.variables
    ]


def _policy_of(layer: Layer, precision: PrecisionSpec) -> PolicyInfo:
    try:
        return POLICIES[policy_of_layer(layer.name, precision)]
    except patterns.UnsupportedPattern:
        # Reported by `settings.problems`.
        return POLICIES[precision.policy]


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
