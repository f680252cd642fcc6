"""Hyperparameters as coordinates: what a model is given instead of names, scales and steps.

A countable hyperparameter is its place in our own grid, every other one its fraction of the sampling scale.
So a model never rounds a step by itself, and sees log and reverse log scales evenly.
"""

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence

from jobs.contracts.ranges import Sampling, Steps, at, fraction_of
from jobs.contracts.search_space import (
    BooleanParameter,
    ChoiceParameter,
    FixedParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
    Value,
    Values,
)


class Axis:
    """One hyperparameter with more than one value.

    Attributes:
        parameter: the hyperparameter.
        points: the values of its grid; empty for a continuous one.
        is_ordered: whether nearby places mean similar values.
    """

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter
        self.points: Sequence[Value] = parameter.grid() if parameter.is_countable() else ()
        self.is_ordered = _is_ordered(parameter)
        is_computed = isinstance(self.points, range | Steps)  # there may be billions
        self._places = {} if is_computed else {v: i for i, v in enumerate(self.points)}

    @property
    def last(self) -> int:
        """Return the last place in the grid."""
        return len(self.points) - 1

    def place(self, value: Value) -> int:
        """Return where a value stands in the grid; one beside the grid stands at its nearest point."""
        if isinstance(self.points, range):
            return min(max(round((int(value) - self.points.start) / self.points.step), 0), self.last)
        if isinstance(self.points, Steps):
            return self.points.place(float(value))
        if (found := self._places.get(value)) is not None:
            return found
        numbers = [float(point) for point in self.points]
        right = min(bisect_left(numbers, float(value)), self.last)
        left = max(right - 1, 0)
        return left if float(value) - numbers[left] < numbers[right] - float(value) else right

    def unit(self, value: Value) -> float:
        """Return a value's coordinate in [0, 1]."""
        if self.points:
            return self.place(value) / self.last
        low, high, sampling = self._scale()
        return fraction_of(float(value), low, high, sampling)

    def value(self, unit: float) -> Value:
        """Return the value at a coordinate in [0, 1]."""
        if self.points:
            return self.points[min(int(unit * len(self.points)), self.last)]
        low, high, sampling = self._scale()
        found = min(max(at(unit, low, high, sampling), low), high)
        return round(found) if isinstance(self.parameter, IntParameter) else found

    def near(self, unit: float) -> Value:
        """Return the value whose coordinate is nearest to `unit`."""
        return self.points[round(unit * self.last)] if self.points else self.value(unit)

    def _scale(self) -> tuple[float, float, Sampling]:
        if not isinstance(self.parameter, IntParameter | FloatParameter):
            raise TypeError(f"{self.parameter.name} is not a number")
        return self.parameter.min, self.parameter.max, self.parameter.sampling


def axes_of(space: Space) -> list[Axis]:
    """Return an axis for every hyperparameter that can vary, in the space's order."""
    return [axis for parameter in space if (axis := Axis(parameter)).last != 0]


def _is_ordered(parameter: Parameter) -> bool:
    if isinstance(parameter, ChoiceParameter):
        values = parameter.values
        return not isinstance(values[0], str | bool) and list(values) == sorted(values)
    return not isinstance(parameter, BooleanParameter | FixedParameter)


def compose(space: Space, axes: Sequence[Axis], choose: Callable[[Axis], Value]) -> dict[str, Value]:
    """Build a configuration in the space's order, asking `choose` for each axis that is active."""
    by_name = {axis.parameter.name: axis for axis in axes}
    values: dict[str, Value] = {}
    for parameter in space:
        if parameter.is_active(values):
            axis = by_name.get(parameter.name)
            values[parameter.name] = parameter.grid()[0] if axis is None else choose(axis)
    return values


def draw(space: Space, axes: Sequence[Axis], rng: random.Random) -> dict[str, Value]:
    """Draw a configuration, each active axis evenly on its own."""
    return compose(space, axes, lambda axis: axis.value(rng.random()))


def neighbour(
    space: Space, axes: Sequence[Axis], values: Values, spread: float, rng: random.Random
) -> dict[str, Value]:
    """Draw a configuration near `values`: on some axes a normal step of `spread`."""
    share = max(0.3, 1 / len(axes))

    def choose(axis: Axis) -> Value:
        old = values.get(axis.parameter.name)
        if old is None or (not axis.is_ordered and rng.random() < spread):
            return axis.value(rng.random())
        if not axis.is_ordered or rng.random() > share:
            return old
        return axis.near(min(max(rng.gauss(axis.unit(old), max(spread, 1 / max(axis.last, 1))), 0.0), 1.0))

    return compose(space, axes, choose)
