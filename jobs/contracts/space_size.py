"""Computes how many configurations a search space has, without enumerating them.

Hyperparameters are processed one after another, each as early as its parents allow. Of the configurations
so far, only one fact matters for the rest: which of the waiting children have had all their conditions met.
Configurations that agree in this are counted together, so the cost grows with the number of overlapping
conditions, not with the number of configurations.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from jobs.contracts.search_space import Parameter, Space

MOST_STATES = 4096
"""Conditions more entangled than this are not counted further: a second would pass."""


class _Condition(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def in_(self) -> tuple[Any, ...]: ...


class Conditional(Protocol):
    """What counting knows of a hyperparameter."""

    @property
    def name(self) -> str: ...  # noqa: D102
    def conditions(self) -> Sequence[_Condition]: ...  # noqa: D102
    def grid(self) -> Sequence[Any]: ...  # noqa: D102


class Count(NamedTuple):
    """How many configurations there are; at least so many, where `exact` does not hold."""

    number: int
    exact: bool


State = frozenset[int]
"""The children, by their place, of which a parent has been taken and that may still become active."""


def count(space: Sequence[Conditional]) -> Count:
    """Count the grid's configurations, inactive hyperparameters left out."""
    parts = [_count_connected(part) for part in _components(space)]
    return Count(math.prod(part.number for part in parts), all(part.exact for part in parts))


def _components(space: Sequence[Conditional]) -> Iterator[list[Conditional]]:
    """Divide a space into parts between which there is no condition."""
    leader = {parameter.name: parameter.name for parameter in space}

    def lead(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for parameter in space:
        for condition in parameter.conditions():
            leader[lead(parameter.name)] = lead(condition.name)
    parts: dict[str, list[Conditional]] = {}
    for parameter in space:
        parts.setdefault(lead(parameter.name), []).append(parameter)
    yield from parts.values()


def _count_connected(space: list[Conditional]) -> Count:
    ordered = _early(space)
    states: Counter[State] = Counter({frozenset(): 1})
    begun: set[int] = set()
    for place, parameter in enumerate(ordered):
        children = _children(parameter, ordered)
        states = _taken(states, place, parameter, children, begun)
        begun |= children.keys()
        if len(states) > MOST_STATES:
            return Count(states.total(), exact=False)  # each can be completed in at least one way
    return Count(states.total(), exact=True)


def _children(parameter: Conditional, ordered: list[Conditional]) -> dict[int, frozenset[Any]]:
    """Return the children of a hyperparameter by their place, with the values that each asks for."""
    children: dict[int, frozenset[Any]] = {}
    for place, child in enumerate(ordered):
        for condition in child.conditions():
            if condition.name == parameter.name:
                wanted = frozenset(condition.in_)
                children[place] = children.get(place, wanted) & wanted
    return children


def _early(space: list[Conditional]) -> list[Conditional]:
    """Return the parents of each child just before it: few children then wait at the same time."""
    known = {parameter.name: parameter for parameter in space}
    ordered: dict[str, Conditional] = {}

    def take(parameter: Conditional) -> None:
        for condition in parameter.conditions():
            if condition.name not in ordered:
                take(known[condition.name])
        ordered.setdefault(parameter.name, parameter)

    for parameter in sorted(space, key=lambda one: not one.conditions()):  # children draw their parents along
        take(parameter)
    return list(ordered.values())


def _taken(
    states: Counter[State],
    place: int,
    parameter: Conditional,
    children: dict[int, frozenset[Any]],
    begun: set[int],
) -> Counter[State]:
    """Return the states after one more hyperparameter has got each of its values, or been left out.

    Args:
        states: those before.
        place: of the hyperparameter.
        parameter: itself.
        children: what depends on it.
        begun: children of which an earlier parent has been taken.
    """
    kinds = _kinds(parameter.grid(), children)
    is_child = bool(parameter.conditions())
    result: Counter[State] = Counter()
    for state, ways in states.items():
        waiting = state - {place}
        if is_child and place not in state:
            result[waiting.difference(children)] += ways  # left out: so is whoever depends on it
            continue
        for met, values in kinds.items():
            open_still = frozenset(child for child in met if child in state or child not in begun)
            result[waiting.difference(children) | open_still] += ways * values
    return result


def _kinds(grid: Sequence[Any], children: dict[int, frozenset[Any]]) -> dict[State, int]:
    """Count the values of a grid by the children whose conditions they meet.

    Only values that a condition names can meet one, so the others are counted without being looked at.
    """
    values = frozenset(grid) if isinstance(grid, list) else grid
    kinds: Counter[State] = Counter()
    for value in frozenset[Any]().union(*children.values()):
        if value in values:
            kinds[frozenset(child for child, wanted in children.items() if value in wanted)] += 1
    rest = len(grid) - kinds.total()
    if rest:
        kinds[frozenset()] += rest
    return kinds


COUNTED = 10**15
"""Larger spaces are given as "at least" this: a browser would no longer show the number exactly."""
NAMED = 3
"""More continuous hyperparameters than this are counted, not named."""


class SpaceSize(NamedTuple):
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


def grid_size(space: Space, limit: int = 1_000_000) -> int:
    """Count the grid's configurations, up to `limit`; conditions too entangled to count give `limit`."""
    found = count(space)
    return min(found.number, limit) if found.exact else limit


def of(space: Space) -> SpaceSize:
    """Measure a space, up to `COUNTED`."""
    grid = count(space)
    continuous = tuple(parameter.name for parameter in space if _is_continuous(parameter))
    if continuous:
        return SpaceSize(min(grid.number, COUNTED), None, continuous, _whole(grid))
    whole = tuple(_with_every_value(parameter) for parameter in space)
    every = grid if whole == space else count(whole)
    return SpaceSize(
        min(grid.number, COUNTED), min(every.number, COUNTED), (), _whole(grid) and _whole(every)
    )


def _whole(counted: Count) -> bool:
    return counted.exact and counted.number < COUNTED


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
