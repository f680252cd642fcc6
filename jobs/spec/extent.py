"""How large a search space is, as numbers and in words."""

from typing import NamedTuple

from jobs.spec import counting
from jobs.spec.search_space import Parameter, Space

COUNTED = 10**15
"""Larger spaces are given as "at least" this: a browser would no longer show the number exactly."""
NAMED = 3
"""More continuous hyperparameters than this are counted, not named."""


class Extent(NamedTuple):
    """How many configurations a grid over a space has, and how many there are at all: None is without end.

    Numbers beyond `COUNTED`, and those under conditions too entangled to count, are lower bounds: `exact`
    does not hold.
    """

    grid: int
    distinct: int | None
    continuous: tuple[str, ...]
    exact: bool = True

    def __str__(self) -> str:
        """Say it in a line, with what a grid would use where that is not all there is."""
        if self.distinct is None:
            many = len(self.continuous) > NAMED
            where = f"{len(self.continuous)} hyperparameters" if many else ", ".join(self.continuous)
            return f"continuous in {where}; a grid over it would use {self.told(self.grid)} points"
        if self.distinct > self.grid:
            whole, used = self.told(self.distinct), number(self.grid)
            return f"{whole} configurations; a grid over them would use {used}"
        return f"{self.told(self.grid)} grid point{'' if self.grid == 1 else 's'}"

    def told(self, count: int) -> str:
        """Write a count; of what was counted no further it says so."""
        return number(count) if self.exact else f"at least {number(count)}"


def of(space: Space) -> Extent:
    """Measure a space, up to `COUNTED`."""
    grid = counting.count(space)
    continuous = tuple(parameter.name for parameter in space if _is_continuous(parameter))
    if continuous:
        return Extent(min(grid.number, COUNTED), None, continuous, _whole(grid))
    whole = tuple(_with_every_value(parameter) for parameter in space)
    every = grid if whole == space else counting.count(whole)
    return Extent(min(grid.number, COUNTED), min(every.number, COUNTED), (), _whole(grid) and _whole(every))


def _whole(count: counting.Count) -> bool:
    return count.exact and count.number < COUNTED


def _is_continuous(parameter: Parameter) -> bool:
    return parameter.kind == "float" and parameter.step is None and parameter.min < parameter.max


def _with_every_value(parameter: Parameter) -> Parameter:
    """Return the same hyperparameter with each whole number on its grid, also where the grid is spread."""
    if parameter.kind == "int" and parameter.step is None:
        return parameter.model_copy(update={"sampling": "linear"})
    return parameter


def number(count: int) -> str:
    """Write a count as the pages do."""
    return f"{count:,}".replace(",", "\u202f")
