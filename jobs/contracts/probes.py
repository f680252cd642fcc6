"""Which values of a search space are tried before anything runs: each hyperparameter's extremes, under
every choice that decides over it."""

from collections.abc import Iterator, Sequence
from itertools import islice

from jobs.contracts.fit import CLIPS
from jobs.contracts.search_space import ChoiceParameter, Parameter, Space, Value, grid

LOOKED_AT = 64
"""How many values of one hyperparameter are tried: all of them, in most spaces."""
COMBINATIONS = 256
DECIDE: dict[str, tuple[str, ...]] = {
    "optimizer_args": ("optimizer",),
    "schedule": ("schedule/kind", "schedule/epochs", "schedule/warmup_epochs", "epochs"),
    **dict.fromkeys(CLIPS, CLIPS),
}
"""Hyperparameters that decide what a fit field of this name, or what stands inside it, may be."""


def extremes(parameter: Parameter) -> Sequence[Value]:
    """Return the values between which a hyperparameter's effects lie, the largest first."""
    values = parameter.grid()
    if parameter.kind in ("int", "float"):
        return list(dict.fromkeys((values[-1], values[0])))
    return values[::-1]


def configurations(space: Space, parameter: Parameter) -> Iterator[dict[str, Value]]:
    """Yield values for `parameter` and what decides over it, in the space's order."""
    names = _deciding(space, parameter)
    parents = {condition.name for other in space for condition in other.conditions()}
    reduced = tuple(_tried(other, other.name in parents) for other in space if other.name in names)
    for values in islice(grid(reduced), COMBINATIONS):
        if parameter.name in values:
            yield values


def _deciding(space: Space, parameter: Parameter) -> set[str]:
    """Return the names of `parameter`, its conditions, theirs, and of what it is judged together with."""
    by_name = {other.name: other for other in space}
    found, left = {parameter.name}, [parameter]
    while left:
        one = left.pop()
        above = [condition.name for condition in one.conditions()]
        for name in (*above, *DECIDE.get(one.name.partition("/")[0], ())):
            if name in by_name and name not in found:
                found.add(name)
                left.append(by_name[name])
    return found


def _tried(parameter: Parameter, is_parent: bool) -> Parameter:
    """Return the same hyperparameter with fewer values; of one with children, all that they may ask for."""
    every = is_parent or parameter.name == "batch_size"  # each batch size must divide over the mesh
    values = tuple((parameter.grid() if every else extremes(parameter))[:LOOKED_AT])
    return ChoiceParameter(kind="choice", name=parameter.name, values=values, when=parameter.when)
