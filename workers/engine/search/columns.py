"""Converts configurations to matrix rows, for models that use distances."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jobs.spec.space.search_space import Space, Values
from workers.engine.search.axes import Axis

ONE_HOT_UP_TO = 16
"""A longer list of unordered values becomes one column with its indices."""
INACTIVE = 0.5
"""Coordinate of a hyperparameter that is not active: the middle, with a small distance to all values."""


class Columns:
    """Converts configurations to points in the unit cube.

    A number or an ordered choice list has one column, other choices one column per value. A conditional
    hyperparameter has one more column, which is 1 if it is active.
    """

    def __init__(self, space: Space, axes: Sequence[Axis]) -> None:
        self._axes = axes
        self._conditional = {p.name for p in space if p.conditions()}
        self._begins: list[int] = []
        self.width = 0
        for axis in axes:
            self._begins.append(self.width)
            self.width += self._values_of(axis) + (axis.parameter.name in self._conditional)

    def matrix(self, configurations: Sequence[Values]) -> npt.NDArray[np.float64]:
        """Return an array with shape (configurations, width)."""
        matrix = np.zeros((len(configurations), self.width))
        for axis, begin in zip(self._axes, self._begins, strict=True):
            self._fill(matrix, axis, begin, configurations)
        return matrix

    def _values_of(self, axis: Axis) -> int:
        return len(axis.points) if self._is_one_hot(axis) else 1

    def _is_one_hot(self, axis: Axis) -> bool:
        return not axis.is_ordered and 2 < len(axis.points) <= ONE_HOT_UP_TO

    def _fill(
        self, matrix: npt.NDArray[np.float64], axis: Axis, begin: int, configurations: Sequence[Values]
    ) -> None:
        name, one_hot = axis.parameter.name, self._is_one_hot(axis)
        for row, values in enumerate(configurations):
            if name not in values:
                matrix[row, begin] = 0.0 if one_hot else INACTIVE
                continue
            if one_hot:
                matrix[row, begin + axis.place(values[name])] = 1.0
            else:
                matrix[row, begin] = axis.unit(values[name])
            if name in self._conditional:
                matrix[row, begin + self._values_of(axis)] = 1.0
