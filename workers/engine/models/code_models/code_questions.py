"""Finds hyperparameters that have no effect beside a value of another one, by what builds ask for."""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from jobs.spec.checks.dry_build import Unasked
from jobs.spec.space.search_space import Value

MAX_UNASKED = 200
"""Values of hyperparameters for which others are named that have no effect."""


class Questions(NamedTuple):
    """The hyperparameters for which the code asked in one build.

    Attributes:
        exploration: builds of another one execute other code.
        names: all for which it asked.
        values: those of them that were active, with their values.
    """

    exploration: int
    names: frozenset[str]
    values: Mapping[str, Value]


def follow_questions(hyperparameters: Any) -> set[str]:
    """Return a set that receives the name of each hyperparameter for which code asks from now on."""
    asked: set[str] = set()
    retrieve, get = hyperparameters._retrieve, hyperparameters.get

    def follow(declared: Any) -> Any:
        asked.add(declared.name)
        return retrieve(declared)

    def follow_get(name: str) -> Any:
        asked.add(hyperparameters._get_name(name))
        return get(name)

    hyperparameters._retrieve, hyperparameters.get = follow, follow_get
    return asked


def unasked_in(builds: Sequence[Questions], names: Collection[str]) -> tuple[Unasked, ...]:
    """Return which of some hyperparameters the code does not ask for, by values of the others.

    That no build with a value asked for another one shows nothing where few pairs of values were built. So
    two builds have to show it, which are equal apart from the value and from questions in one of them alone.
    """
    found: dict[tuple[str, str], tuple[Value, set[str]]] = {}
    for one, other in combinations(builds, 2):
        if (name := _only_difference(one, other)) is not None:
            for build, second in ((one, other), (other, one)):
                value = build.values[name]
                entry = found.setdefault((name, repr(value)), (value, set()))
                entry[1].update(second.names - build.names)
    for build in builds:
        for name, value in build.values.items():
            if (name, repr(value)) in found:
                found[name, repr(value)][1].difference_update(build.names)
    unasked = [
        Unasked(name=name, value=value, names=tuple(sorted(missing & set(names))))
        for (name, _), (value, missing) in found.items()
        if name in names and not missing.isdisjoint(names)
    ]
    return tuple(unasked[:MAX_UNASKED])


def _only_difference(one: Questions, other: Questions) -> str | None:
    """Return the one hyperparameter that has different values in builds that both asked for it."""
    if one.exploration != other.exploration:
        return None
    different: str | None = None
    for name, value in one.values.items():
        # In Python, True == 1.
        if name in other.values and repr(other.values[name]) != repr(value):
            if different is not None:
                return None
            different = name
    return different
