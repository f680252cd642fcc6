"""Applies a mesh's layout rules to variables: the rule that matches, the shards, and the problems."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from pydantic import ValidationError

from jobs.spec.checks import patterns
from jobs.spec.problems import Problem
from jobs.spec.sections.mesh import LayoutRule, MeshSpec
from jobs.spec.templates.layers import Shape, Variable


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


def device_shape(variable: Variable, mesh: MeshSpec | None) -> Shape:
    """Compute the shape of one device's shard under a valid layout.

    Raises:
        ValueError: the layout does not divide the variable.
    """
    rules = rules_for(variable, mesh) if mesh is not None else []
    if mesh is None or not rules:
        return variable.shape
    return shard_shape(variable.shape, rules[0][1].axes, mesh)


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
