"""Selects the configurations with which a search space is checked before it runs.

These are each hyperparameter's extreme values, combined with every choice that affects their validity.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from jobs.contracts.fit import CLIPS
from jobs.contracts.search_space import ChoiceParameter, Parameter, Space, Value, grid

MOST_VALUES = 64
"""The most values of one hyperparameter that are checked; most spaces have fewer."""
COMBINATIONS = 256
DECIDE: dict[str, tuple[str, ...]] = {
    "optimizer_args": ("optimizer",),
    "schedule": ("schedule/kind", "schedule/epochs", "schedule/warmup_epochs", "epochs"),
    **dict.fromkeys(CLIPS, CLIPS),
}
"""Maps a fit field to the hyperparameters that affect which values it, or its parts, may have."""


def extremes(parameter: Parameter) -> Sequence[Value]:
    """Return a hyperparameter's extreme values, the largest first; all values if it has no order."""
    values = parameter.grid()
    if parameter.kind in ("int", "float"):
        return list(dict.fromkeys((values[-1], values[0])))
    return values[::-1]


def configurations(space: Space, parameter: Parameter) -> Iterator[dict[str, Value]]:
    """Yield values for `parameter` and the hyperparameters that it depends on, in the space's order."""
    names = _deciding(space, parameter)
    parents = {condition.name for other in space for condition in other.conditions()}
    space_part = tuple(_reduced(other, other.name in parents) for other in space if other.name in names)
    for values in islice(grid(space_part), COMBINATIONS):
        if parameter.name in values:
            yield values


def _deciding(space: Space, parameter: Parameter) -> set[str]:
    """Return the names of `parameter`, its ancestors, and the hyperparameters in `DECIDE`."""
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


def _reduced(parameter: Parameter, is_parent: bool) -> Parameter:
    """Return the hyperparameter reduced to its extremes, or with all values if others depend on it."""
    every = is_parent or parameter.name == "batch_size"  # each batch size must divide over the mesh
    values = tuple((parameter.grid() if every else extremes(parameter))[:MOST_VALUES])
    return ChoiceParameter(kind="choice", name=parameter.name, values=values, when=parameter.when)
