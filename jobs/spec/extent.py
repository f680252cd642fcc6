"""How large a search space is, as numbers and in words."""

from typing import NamedTuple

from jobs.spec.search_space import Parameter, Space, grid_size

COUNTED = 100_000
"""Larger spaces are given as "at least" this: counting one with conditions walks through it."""
NAMED = 3
"""More continuous hyperparameters than this are counted, not named."""


class Extent(NamedTuple):
    """How many configurations a grid over a space has, and how many there are at all: None is without end."""

    grid: int
    distinct: int | None
    continuous: tuple[str, ...]

    def __str__(self) -> str:
        """Say it in a line, with what a grid would use where that is not all there is."""
        if self.distinct is None:
            many = len(self.continuous) > NAMED
            where = f"{len(self.continuous)} hyperparameters" if many else ", ".join(self.continuous)
            return f"continuous in {where}; a grid over it would use {number(self.grid)} points"
        if self.distinct > self.grid:
            return f"{number(self.distinct)} configurations; a grid over them would use {number(self.grid)}"
        return f"{number(self.grid)} grid point{'' if self.grid == 1 else 's'}"


def of(space: Space) -> Extent:
    """Measure a space, up to `COUNTED`."""
    grid = grid_size(space, COUNTED)
    continuous = tuple(parameter.name for parameter in space if _is_continuous(parameter))
    if continuous:
        return Extent(grid, None, continuous)
    whole = tuple(_with_every_value(parameter) for parameter in space)
    return Extent(grid, grid if whole == space else grid_size(whole, COUNTED), ())


def _is_continuous(parameter: Parameter) -> bool:
    return parameter.kind == "float" and parameter.step is None and parameter.min < parameter.max


def _with_every_value(parameter: Parameter) -> Parameter:
    """Return the same hyperparameter with each whole number on its grid, also where the grid is spread."""
    if parameter.kind == "int" and parameter.step is None:
        return parameter.model_copy(update={"sampling": "linear"})
    return parameter


def number(count: int) -> str:
    """Write a count as the pages do; of what was counted no further it says so."""
    text = f"{count:,}".replace(",", "\u202f")
    return f"at least {text}" if count >= COUNTED else text
