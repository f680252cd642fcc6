"""Places a model's variables on a mesh: the rule that takes each one, and the slice on each device."""

import math
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from jobs.spec.plan.layout_rules import rules_for, shard_shape
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.templates.layers import FLOAT32, Shape, Variable

type Axes = tuple[str | None, ...]
type Slice = tuple[tuple[int, int], ...]
"""The first index in each dimension, and the one behind the last."""


class Weight(NamedTuple):
    """A variable, with all that a design has to know about it.

    Attributes:
        path: its path, which layout rules match.
        shape: its whole shape.
        trainable: whether the optimizer changes it.
        itemsize: the bytes of one number.
        positions: how often a row of data is multiplied by it: 1 for a dense layer on a vector, the number of
            words for one on each word, the number of pixels for a convolution.
    """

    path: str
    shape: Shape
    trainable: bool = True
    itemsize: int = FLOAT32
    positions: int = 1

    @property
    def kind(self) -> str:
        """Return the last part of its path, such as `kernel`."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def layer(self) -> str:
        """Return the path of the layer that has it."""
        return self.path.rpartition("/")[0]

    @property
    def size(self) -> int:
        """Count its numbers."""
        return math.prod(self.shape)

    @property
    def variable(self) -> Variable:
        """Return it as layout rules see it."""
        return Variable(self.path, self.shape, self.trainable)


class Placement(NamedTuple):
    """A variable on a mesh.

    Attributes:
        weight: the variable.
        rules: the indices of all rules that match it; the first one takes it.
        axes: the mesh axis of each dimension; empty if every device has the whole variable.
        shard: the shape of the part on each device.
        problem: why its rule cannot divide it; then it is shown whole.
    """

    weight: Weight
    rules: tuple[int, ...]
    axes: Axes
    shard: Shape
    problem: str = ""

    @property
    def rule(self) -> int | None:
        """Return the index of the rule that takes it."""
        return self.rules[0] if self.rules else None

    @property
    def is_divided(self) -> bool:
        """Return whether a device has only a part of it."""
        return self.shard != self.weight.shape

    @property
    def bytes(self) -> int:
        """Return the bytes of the part on each device."""
        return math.prod(self.shard) * self.weight.itemsize


class Part(NamedTuple):
    """A slice of a variable, and the devices that have it.

    Attributes:
        slice: the indices in each dimension.
        place: the number of the slice along each divided dimension.
        devices: their numbers in the mesh, counted row by row.
    """

    slice: Slice
    place: tuple[int, ...]
    devices: tuple[int, ...]


def place(weight: Weight, mesh: MeshSpec | None) -> Placement:
    """Return a variable's place under the first rule that matches its whole path."""
    matching = rules_for(weight.variable, mesh) if mesh is not None else []
    rules = tuple(index for index, _ in matching)
    if mesh is None or not matching:
        return Placement(weight, rules, (), weight.shape)
    axes = matching[0][1].axes
    problem = _problem(weight, axes)
    if not problem:
        try:
            return Placement(weight, rules, axes, shard_shape(weight.shape, axes, mesh))
        except ValueError as error:
            problem = str(error)
    return Placement(weight, rules, (), weight.shape, problem)


def _problem(weight: Weight, axes: Axes) -> str:
    if len(axes) != len(weight.shape):
        return (
            f"rule has {_counted(len(axes), 'axis', 'axes')}, shape {list(weight.shape)} has "
            f"{_counted(len(weight.shape), 'dimension', 'dimensions')}: give one axis for each"
        )
    used = [axis for axis in axes if axis is not None]
    repeated = next((axis for axis in used if used.count(axis) > 1), None)
    return f"axis {repeated!r} can divide only one dimension" if repeated is not None else ""


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def place_all(weights: Iterable[Weight], mesh: MeshSpec | None) -> tuple[Placement, ...]:
    """Return the place of each variable."""
    return tuple(place(weight, mesh) for weight in weights)


def parts_of(placement: Placement, mesh: MeshSpec) -> list[Part]:
    """Return the slices of a variable with their devices, in the order of the slices.

    Devices are counted as Keras does: the last axis of the mesh changes first.
    """
    positions = [mesh.axis_names.index(axis) if axis is not None else None for axis in placement.axes]
    devices: dict[tuple[int, ...], list[int]] = {}
    for device, coordinates in enumerate(product(*(range(size) for size in mesh.shape))):
        at = tuple(coordinates[position] if position is not None else 0 for position in positions)
        devices.setdefault(at, []).append(device)
    divided = [i for i, position in enumerate(positions) if position is not None]
    shape = placement.shard
    return [
        Part(
            tuple(
                (index * length, (index + 1) * length)
                for index, length in zip(at or (0,) * len(shape), shape, strict=True)
            ),
            tuple(at[i] for i in divided),
            tuple(numbers),
        )
        for at, numbers in sorted(devices.items())
    ]
