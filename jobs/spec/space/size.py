"""Computes how many configurations a search space has, without enumerating them.

Hyperparameters are processed one after another, each as early as its parents allow. Only one fact about the
configurations so far matters for the rest: for which waiting children all conditions are met. Configurations
that agree in this are counted together, so the cost grows with the number of overlapping conditions, not with
the number of configurations.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from jobs.spec.space.search_space import Space

MOST_STATES = 4096
"""The most states to count; beyond, counting would take longer than a second."""
MOST_STEPS = 500_000
"""The most combinations of a state and a value kind to visit, for the same reason."""
GRID_LIMIT = 1_000_000
"""A grid search needs a grid with fewer configurations."""
COUNTED = 10**15
"""Larger sizes are shown as "at least" this number: a browser could not show them exactly."""
NAMED = 3
"""The most continuous hyperparameters that are listed by name."""


class _Condition(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def in_(self) -> tuple[Any, ...]: ...


class Conditional(Protocol):
    """The part of a hyperparameter that counting needs."""

    @property
    def name(self) -> str: ...  # noqa: D102
    def conditions(self) -> Sequence[_Condition]: ...  # noqa: D102
    def grid(self) -> Sequence[Any]: ...  # noqa: D102


class Count(NamedTuple):
    """A number of configurations; a lower bound if `exact` is False."""

    number: int
    exact: bool


State = frozenset[int]
"""Positions of children that may still become active after the parents processed so far."""


def count_configurations(space: Sequence[Conditional]) -> Count:
    """Count the grid's configurations, without inactive hyperparameters."""
    parts = [_count_connected(part) for part in _components(space)]
    return Count(math.prod(part.number for part in parts), all(part.exact for part in parts))


def _components(space: Sequence[Conditional]) -> Iterator[list[Conditional]]:
    """Divide a space into parts that no condition connects (union-find)."""
    parent = {parameter.name: parameter.name for parameter in space}

    def root_of(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for parameter in space:
        for condition in parameter.conditions():
            parent[root_of(parameter.name)] = root_of(condition.name)
    parts: dict[str, list[Conditional]] = {}
    for parameter in space:
        parts.setdefault(root_of(parameter.name), []).append(parameter)
    yield from parts.values()


def _count_connected(space: list[Conditional]) -> Count:
    ordered = _ordered(space)
    states: Counter[State] = Counter({frozenset(): 1})
    begun: set[int] = set()
    steps = 0
    for place, parameter in enumerate(ordered):
        children = _children(parameter, ordered)
        kinds = _kinds(parameter.grid(), children)
        steps += len(states) * len(kinds)
        if steps <= MOST_STEPS:
            states = _next_states(states, place, parameter, kinds, children, begun)
            begun |= children.keys()
        if steps > MOST_STEPS or len(states) > MOST_STATES:
            # Each can be completed in at least one way, so their number is a lower bound.
            return Count(states.total(), exact=False)
    return Count(states.total(), exact=True)


def _children(parameter: Conditional, ordered: list[Conditional]) -> dict[int, frozenset[Any]]:
    """Return a hyperparameter's children by position, with the parent values that activate each."""
    children: dict[int, frozenset[Any]] = {}
    for place, child in enumerate(ordered):
        for condition in child.conditions():
            if condition.name == parameter.name:
                parent_values = frozenset(condition.in_)
                children[place] = children.get(place, parent_values) & parent_values
    return children


def _ordered(space: list[Conditional]) -> list[Conditional]:
    """Order a space so that each child closely follows its parents, which keeps the states few."""
    by_name = {parameter.name: parameter for parameter in space}
    ordered: dict[str, Conditional] = {}

    def take(parameter: Conditional) -> None:
        for condition in parameter.conditions():
            if condition.name not in ordered:
                take(by_name[condition.name])
        ordered.setdefault(parameter.name, parameter)

    # Children first: each adds its parents just before itself.
    for parameter in sorted(space, key=lambda other: not other.conditions()):
        take(parameter)
    return list(ordered.values())


def _next_states(
    states: Counter[State],
    place: int,
    parameter: Conditional,
    kinds: dict[State, int],
    children: Collection[int],
    begun: set[int],
) -> Counter[State]:
    """Return the states after processing one more hyperparameter.

    Args:
        states: number of configurations by state, before.
        place: the hyperparameter's position.
        parameter: the hyperparameter.
        kinds: its values, as `_kinds` returns them.
        children: its children's positions.
        begun: children with a parent that was processed earlier.
    """
    is_child = bool(parameter.conditions())
    result: Counter[State] = Counter()
    for state, ways in states.items():
        waiting = state - {place}
        if is_child and place not in state:
            # Inactive, and so are its children.
            result[waiting.difference(children)] += ways
            continue
        for met, values in kinds.items():
            open_still = frozenset(child for child in met if child in state or child not in begun)
            result[waiting.difference(children) | open_still] += ways * values
    return result


def _kinds(grid: Sequence[Any], children: dict[int, frozenset[Any]]) -> dict[State, int]:
    """Count a grid's values by the children that they activate.

    Only values named in a condition can activate a child; all others are counted together.
    """
    # A list is searched item by item; a range or `Steps` computes whether it contains a value.
    values = frozenset(grid) if isinstance(grid, list) else grid
    activated: dict[Any, list[int]] = {}
    for child, parent_values in children.items():
        for value in parent_values:
            activated.setdefault(value, []).append(child)
    kinds = Counter(frozenset(met) for value, met in activated.items() if value in values)
    rest = len(grid) - kinds.total()
    if rest:
        kinds[frozenset()] += rest
    return kinds


class SpaceSize(NamedTuple):
    """A search space's size.

    Attributes:
        grid: configurations in a grid over it.
        distinct: all configurations; None if there are infinitely many.
        continuous: the hyperparameters with infinitely many values, by name.
        exact: False if the numbers are lower bounds, because they exceed `COUNTED` or took too long to count.
    """

    grid: int
    distinct: int | None
    continuous: tuple[str, ...]
    exact: bool = True

    def __str__(self) -> str:
        """Describe the size in one line."""
        if self.distinct is None:
            many = len(self.continuous) > NAMED
            where = f"{len(self.continuous)} hyperparameters" if many else ", ".join(self.continuous)
            return f"continuous in {where}; a grid over it would use {self.formatted(self.grid)} points"
        if self.distinct > self.grid:
            whole, used = self.formatted(self.distinct), format_count(self.grid)
            return f"{whole} configurations; a grid over them would use {used}"
        return f"{self.formatted(self.grid)} grid point{'' if self.grid == 1 else 's'}"

    def formatted(self, count: int) -> str:
        """Format a count, with \"at least\" if it is a lower bound."""
        return format_count(count) if self.exact else f"at least {format_count(count)}"


def grid_size(space: Space, limit: int = GRID_LIMIT) -> int:
    """Count a grid's configurations, at most `limit`; `limit` if they cannot be counted."""
    counted = count_configurations(space)
    return min(counted.number, limit) if counted.exact else limit


def size_of_space(space: Space) -> SpaceSize:
    """Return a space's size, counted up to `COUNTED`."""
    grid = count_configurations(space)
    continuous = tuple(p.name for p in space if p.kind == "float" and p.step is None and p.min < p.max)
    if continuous:
        return SpaceSize(min(grid.number, COUNTED), None, continuous, _is_exact(grid))
    # The grid of a logarithmic integer has 10 points. Under linear sampling it has every integer.
    whole = tuple(
        p.model_copy(update={"sampling": "linear"}) if p.kind == "int" and p.step is None else p
        for p in space
    )
    every = grid if whole == space else count_configurations(whole)
    return SpaceSize(
        min(grid.number, COUNTED), min(every.number, COUNTED), (), _is_exact(grid) and _is_exact(every)
    )


def _is_exact(counted: Count) -> bool:
    return counted.exact and counted.number < COUNTED


def format_count(count: int) -> str:
    """Format a count with narrow spaces between thousands, as pages do."""
    return f"{count:,}".replace(",", "\u202f")
