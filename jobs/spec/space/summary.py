"""Describes a search space in words, one line per hyperparameter, for pages and previews."""

from jobs.spec.base import Frozen
from jobs.spec.space.hyperparameters import (
    FloatParameter,
    IntParameter,
    Parameter,
    describe_values,
)
from jobs.spec.space.search_space import Space


class Line(Frozen):
    """A hyperparameter, its values and its condition; `when` is empty if it is always active."""

    name: str
    takes: str
    when: str


def summary(space: Space) -> tuple[Line, ...]:
    """Describe every hyperparameter in a space, in order."""
    lines = []
    for parameter in space:
        conditions = (f"{when.name} is {' or '.join(map(repr, when.in_))}" for when in parameter.conditions())
        lines.append(Line(name=parameter.name, takes=_takes(parameter), when=" and ".join(conditions)))
    return tuple(lines)


def _takes(parameter: Parameter) -> str:
    words = describe_values(parameter)
    if isinstance(parameter, IntParameter | FloatParameter) and parameter.sampling != "linear":
        words += f", {parameter.sampling.replace('_', ' ')} scale"
    if parameter.kind == "fixed":
        return f"always {words}"
    default = parameter.default
    return words if default is None else f"{words}; default {default!r}"
