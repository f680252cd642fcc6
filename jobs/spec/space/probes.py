"""Selects the configurations with which a search space is checked before it runs.

These are each hyperparameter's extreme values, combined with every choice that affects their validity.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from jobs.spec.sections.code_model import FIT
from jobs.spec.sections.fit import CLIPS
from jobs.spec.space.search_space import ChoiceParameter, Parameter, Space, Value, grid
from jobs.spec.space.searchable import TEMPLATE
from jobs.spec.templates import TEMPLATES

MOST_VALUES = 64
"""The most values that are checked for one hyperparameter; most spaces have fewer."""
COMBINATIONS = 256
"""The most configurations that are checked for each hyperparameter."""
ALL_COMBINATIONS = 2048
"""The most configurations that are checked for all hyperparameters together."""
DECIDING_NAMES: dict[str, tuple[str, ...]] = {
    "optimizer_args": ("optimizer",),
    "schedule": ("schedule/kind", "schedule/epochs", "schedule/warmup_epochs", "epochs"),
    **dict.fromkeys(CLIPS, CLIPS),
    **dict.fromkeys(TEMPLATES, (TEMPLATE,)),
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
    reduced: list[Parameter] = []
    for other in space:
        if other.name in names:
            # Conditions may refer to any value of a parent, and each batch size must divide over the mesh.
            needs_all = other.name in parents or other.name == "batch_size"
            tried = tuple((other.grid() if needs_all else extremes(other))[:MOST_VALUES])
            reduced.append(ChoiceParameter(kind="choice", name=other.name, values=tried, when=other.when))
    for values in islice(grid(tuple(reduced)), min(COMBINATIONS, ALL_COMBINATIONS // len(space))):
        if parameter.name in values:
            yield values


def _deciding(space: Space, parameter: Parameter) -> set[str]:
    """Return the names of `parameter`, its ancestors, and those in `DECIDING_NAMES`."""
    by_name = {other.name: other for other in space}
    names, left = {parameter.name}, [parameter]
    while left:
        current = left.pop()
        above = [condition.name for condition in current.conditions()]
        prefix = FIT if current.name.startswith(FIT) else ""
        deciding = DECIDING_NAMES.get(current.name.removeprefix(prefix).partition("/")[0], ())
        for name in (*above, *(prefix + other for other in deciding)):
            if name in by_name and name not in names:
                names.add(name)
                left.append(by_name[name])
    return names
