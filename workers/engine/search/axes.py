"""Converts hyperparameters to coordinates for models, without names, scales and steps.

A countable hyperparameter's coordinate is its index in our grid, any other's its fraction of the
sampling scale. So a model does not round steps itself, and log and reverse log scales become linear.
"""

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence

from jobs.spec.space.ranges import Sampling, Steps, fraction_of, value_at
from jobs.spec.space.search_space import (
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
        points: its grid's values; empty for a continuous hyperparameter.
        is_ordered: whether neighbouring indices mean similar values.
    """

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter
        self.points: Sequence[Value] = parameter.grid() if parameter.is_countable() else ()
        if isinstance(parameter, ChoiceParameter):
            values = parameter.values
            is_numeric = not isinstance(values[0], str | bool)
            self.is_ordered = is_numeric and list(values) == sorted(values)
        else:
            self.is_ordered = not isinstance(parameter, BooleanParameter | FixedParameter)
        # Values that are computed on access are not listed, because there may be billions.
        is_computed = isinstance(self.points, range | Steps)
        self._places = {} if is_computed else {v: i for i, v in enumerate(self.points)}

    @property
    def last(self) -> int:
        """The grid's last index; -1 for a continuous hyperparameter."""
        return len(self.points) - 1

    def place(self, value: Value) -> int:
        """Return a value's index in the grid; for a value that is not in it, the nearest point's."""
        if isinstance(self.points, range):
            return min(max(round((int(value) - self.points.start) / self.points.step), 0), self.last)
        if isinstance(self.points, Steps):
            return self.points.place(float(value))
        if (index := self._places.get(value)) is not None:
            return index
        # Not a point of this grid: from an earlier search, or from before the space was changed.
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
            # Equal shares of [0, 1]: rounding to the nearest index would give both ends half a share.
            return self.points[min(int(unit * len(self.points)), self.last)]
        low, high, sampling = self._scale()
        # Rounding may exceed a bound.
        number = min(max(value_at(unit, low, high, sampling), low), high)
        return round(number) if isinstance(self.parameter, IntParameter) else number

    def near(self, unit: float) -> Value:
        """Return the value whose coordinate is nearest to `unit`."""
        return self.points[round(unit * self.last)] if self.points else self.value(unit)

    def _scale(self) -> tuple[float, float, Sampling]:
        if not isinstance(self.parameter, IntParameter | FloatParameter):
            raise TypeError(f"{self.parameter.name} is not a number")
        return self.parameter.min, self.parameter.max, self.parameter.sampling


def axes_of(space: Space) -> list[Axis]:
    """Return an axis for every hyperparameter with more than one value, in the space's order."""
    return [axis for parameter in space if (axis := Axis(parameter)).last != 0]


def compose(space: Space, axes: Sequence[Axis], choose: Callable[[Axis], Value]) -> dict[str, Value]:
    """Return a configuration in the space's order; `choose` returns the value of each active axis.

    Args:
        space: the search space.
        axes: the space's axes.
        choose: called for the active axes in the space's order.
    """
    by_name = {axis.parameter.name: axis for axis in axes}
    values: dict[str, Value] = {}
    for parameter in space:
        if parameter.is_active(values):
            axis = by_name.get(parameter.name)
            values[parameter.name] = parameter.grid()[0] if axis is None else choose(axis)
    return values


def draw(space: Space, axes: Sequence[Axis], rng: random.Random) -> dict[str, Value]:
    """Draw a configuration, each active axis uniformly and independently."""
    return compose(space, axes, lambda axis: axis.value(rng.random()))


def neighbour(
    space: Space, axes: Sequence[Axis], values: Values, spread: float, rng: random.Random
) -> dict[str, Value]:
    """Draw a configuration near `values`, with a normally distributed step on some axes.

    Args:
        space: the search space.
        axes: the space's axes.
        values: the configuration to start from.
        spread: a step's standard deviation, as a fraction of the axis; for an unordered axis the probability
            of a new value.
        rng: random generator.
    """
    share = max(0.3, 1 / len(axes))

    def choose(axis: Axis) -> Value:
        old = values.get(axis.parameter.name)
        if old is None or (not axis.is_ordered and rng.random() < spread):
            return axis.value(rng.random())
        if not axis.is_ordered or rng.random() > share:
            return old
        # At least the distance of two grid points; a smaller step would be rounded to the old value.
        deviation = max(spread, 1 / max(axis.last, 1))
        return axis.near(min(max(rng.gauss(axis.unit(old), deviation), 0.0), 1.0))

    return compose(space, axes, choose)
