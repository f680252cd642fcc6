"""A search space in words, a line for each hyperparameter: for pages, the review and an import's preview."""

from jobs.contracts.base import Frozen
from jobs.contracts.hyperparameters import FloatParameter, IntParameter, Parameter, told
from jobs.contracts.search_space import Space


class Line(Frozen):
    """One hyperparameter: what it takes, and when it is there; empty if always."""

    name: str
    takes: str
    when: str


def summary(space: Space) -> tuple[Line, ...]:
    """Describe every hyperparameter of a space, in order."""
    return tuple(Line(name=one.name, takes=_takes(one), when=_when(one)) for one in space)


def _takes(parameter: Parameter) -> str:
    words = told(parameter)
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
