"""Suggests few layout rules that fit every model that an experiment may build."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobs.spec.checks import patterns
from jobs.spec.plan.mesh.patterns_of_paths import MAX_PATTERN, any_numbers, without_numbers
from jobs.spec.plan.mesh.placement import Axes
from jobs.spec.sections.mesh import LayoutRule, MeshSpec
from jobs.spec.templates.layers import Shape, Variable

MOST_RULES = 6
"""More rules are too many to read; those of the largest variables are kept."""
MOST_DIMENSIONS = 8
"""The most axes of a rule, as in the spec."""
DIVIDED = ("kernel", "bias")


class _Group(NamedTuple):
    """Variables of the same axes, with the alternatives for each part of their paths.

    Attributes:
        parts: for each part of the path, patterns of which one matches it.
        axes: of the variables.
        bytes: of the variables in the largest model that has them.
    """

    parts: tuple[tuple[str, ...], ...]
    axes: Axes
    bytes: int

    @property
    def pattern(self) -> str:
        """Return the pattern of a rule."""
        return "/".join(part[0] if len(part) == 1 else f"({'|'.join(part)})" for part in self.parts)


def suggest_rules(
    mesh: MeshSpec, models: Sequence[Sequence[Variable]], axis: str, *, are_all: bool
) -> tuple[LayoutRule, ...]:
    """Return rules that divide kernels and biases along `axis`, by their last dimension.

    A rule divides whatever it matches in each of the models. No two rules match one variable.

    Args:
        mesh: the devices.
        models: the variables of each model that the experiment may build.
        axis: the axis of the mesh.
        are_all: whether it builds no other models. If not, variables whose paths differ only in their
            numbers are divided all or not at all, because another model may have more of them.
    """
    shapes: defaultdict[str, set[Shape]] = defaultdict(set)
    sizes: dict[str, int] = {}
    for variable in (variable for model in models for variable in model):
        shapes[variable.path].add(variable.shape)
        sizes[variable.path] = max(variable.bytes, sizes.get(variable.path, 0))
    wanted = _wanted(shapes, axis, mesh.axis(axis))
    if not are_all:
        refused = {without_numbers(path) for path in shapes if path not in wanted}
        wanted = {path: axes for path, axes in wanted.items() if without_numbers(path) not in refused}
    groups = _joined(_groups(wanted, sizes, shapes))
    largest = sorted(groups, key=lambda group: group.bytes, reverse=True)[:MOST_RULES]
    return tuple(LayoutRule(match=group.pattern, axes=group.axes) for group in groups if group in largest)


def _wanted(shapes: Mapping[str, Iterable[Shape]], axis: str, size: int) -> dict[str, Axes]:
    """Return the axes of the variables whose last dimension is divisible in every model."""
    wanted: dict[str, Axes] = {}
    for path, found in shapes.items():
        dimensions = {len(shape) for shape in found}
        if path.rpartition("/")[2] not in DIVIDED or len(dimensions) > 1:
            continue
        (count,) = dimensions
        if 0 < count <= MOST_DIMENSIONS and all(shape[-1] % size == 0 for shape in found):
            wanted[path] = (*(None,) * (count - 1), axis)
    return wanted


def _groups(wanted: Mapping[str, Axes], sizes: Mapping[str, int], paths: Iterable[str]) -> Iterator[_Group]:
    """Yield the variables whose paths differ only in their numbers, if all have the same axes.

    The other variables are groups of their own.
    """
    classes: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        classes[any_numbers(path)].append(path)
    for pattern, members in classes.items():
        if len({wanted.get(path) for path in members}) == 1:
            named = {pattern: members}
        else:
            named = {re.escape(path): [path] for path in members}
        for match, matched in named.items():
            axes = wanted.get(matched[0])
            # Own code may name layers in a way that no pattern can express.
            if axes is not None and len(match) <= MAX_PATTERN and patterns.refusal(match) is None:
                yield _Group(
                    tuple((part,) for part in match.split("/")), axes, sum(sizes[path] for path in matched)
                )


def _joined(groups: Iterable[_Group]) -> list[_Group]:
    """Join groups of the same axes whose paths differ in one part, as long as there are such groups."""
    joined: list[_Group] = []
    for group in groups:
        last = group
        while (found := next(_joins(joined, last), None)) is not None:
            at, last = found
            del joined[at]
        joined.append(last)
    return joined


def _joins(groups: Sequence[_Group], group: _Group) -> Iterator[tuple[int, _Group]]:
    """Yield the groups with which a group can be joined: their index, and both together."""
    for i, other in enumerate(groups):
        if other.axes != group.axes or len(other.parts) != len(group.parts):
            continue
        differing = [at for at, parts in enumerate(group.parts) if parts != other.parts[at]]
        # With two differing parts, the alternatives would match further paths.
        if len(differing) == 1:
            at = differing[0]
            both = tuple(dict.fromkeys((*other.parts[at], *group.parts[at])))
            parts = (*group.parts[:at], both, *group.parts[at + 1 :])
            together = _Group(parts, group.axes, group.bytes + other.bytes)
            if len(together.pattern) <= MAX_PATTERN:
                yield i, together
