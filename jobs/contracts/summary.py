"""Describes a search space in words, one line per hyperparameter, for pages and previews."""

from jobs.contracts.base import Frozen
from jobs.contracts.hyperparameters import FloatParameter, IntParameter, Parameter, describe_values
from jobs.contracts.search_space import Space


class Line(Frozen):
    """A hyperparameter, its values and its condition; `when` is empty if it is always active."""

    name: str
    takes: str
    when: str


def summary(space: Space) -> tuple[Line, ...]:
    """Describe every hyperparameter of a space, in order."""
    return tuple(Line(name=one.name, takes=_takes(one), when=_when(one)) for one in space)


def _takes(parameter: Parameter) -> str:
    words = describe_values(parameter)
    if isinstance(parameter, IntParameter | FloatParameter) and parameter.sampling != "linear":
        words += f", {parameter.sampling.replace('_', ' ')} scale"
    if parameter.kind == "fixed":
        return f"always {words}"
    default = parameter.default
    return words if default is None else f"{words}; default {default!r}"


def _when(parameter: Parameter) -> str:
    return " and ".join(
        f"{condition.name} is {' or '.join(repr(value) for value in condition.in_)}"
        for condition in parameter.conditions()
    )
