"""Checks, enumerates and samples search spaces, which list hyperparameters in order.

All functions depend on the space alone, so the plan on a page, a grid search and a random search agree.
"""

import random
from collections.abc import Iterator

from jobs.spec.space.hyperparameters import (
    BooleanParameter,
    ChoiceParameter,
    FixedParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    Value,
    Values,
    When,
    describe_values,
)
from jobs.spec.space.ranges import Sampling

# Most modules need a space together with the kinds of its hyperparameters, so both are imported from here.
__all__ = [
    "BooleanParameter",
    "ChoiceParameter",
    "FixedParameter",
    "FloatParameter",
    "IntParameter",
    "Parameter",
    "Sampling",
    "Space",
    "Value",
    "Values",
    "When",
    "check_space",
    "check_values",
    "grid",
    "sample",
    "space_errors",
    "value_errors",
]

Space = tuple[Parameter, ...]


def check_space(space: Space) -> None:
    """Check names and conditions over the whole space.

    Raises:
        ValueError: a name is used twice or a condition can never be met; the message begins with the place.
    """
    for place, message in space_errors(space):
        raise ValueError(f"{place}: {message}")


def space_errors(space: Space) -> Iterator[tuple[str, str]]:
    """Yield a space's errors: a dotted path into it, such as `1.when.in`, and a message."""
    seen: dict[str, Parameter] = {}
    for i, parameter in enumerate(space):
        if parameter.name in seen:
            yield f"{i}.name", f"{parameter.name!r} is used twice"
        listed = isinstance(parameter.when, tuple)
        for j, condition in enumerate(parameter.conditions()):
            where = f"{i}.when.{j}" if listed else f"{i}.when"
            if condition.name not in seen:
                sentence = f"{parameter.name!r} depends on {condition.name!r}, which must be listed before it"
                yield where, sentence
            elif message := _impossible_condition(seen[condition.name], condition):
                yield f"{where}.in", message
        seen.setdefault(parameter.name, parameter)


def _impossible_condition(parent: Parameter, condition: When) -> str:
    """Return why one of a condition's values is impossible; an empty string if all are possible."""
    for value in condition.in_:
        if not parent.takes(value):
            return f"{parent.name!r} never has the value {value!r}; its values are {describe_values(parent)}"
    return ""


def grid(space: Space) -> Iterator[dict[str, Value]]:
    """Yield every distinct configuration in a stable order; the last parameter varies fastest.

    Inactive hyperparameters are left out, so branches that differ only in them appear once.
    """
    points = [parameter.grid() for parameter in space]

    def extend(values: dict[str, Value], i: int) -> Iterator[dict[str, Value]]:
        while i < len(space) and not space[i].is_active(values):
            i += 1
        if i == len(space):
            yield values
            return
        name = space[i].name
        for value in points[i]:
            yield from extend({**values, name: value}, i + 1)

    yield from extend({}, 0)


def sample(space: Space, rng: random.Random) -> dict[str, Value]:
    """Draw a configuration: each active hyperparameter independently."""
    values: dict[str, Value] = {}
    for parameter in space:
        if parameter.is_active(values):
            values[parameter.name] = parameter.sample(rng)
    return values


def check_values(space: Space, values: Values) -> dict[str, Value]:
    """Check a configuration from a user and return it in the space's order.

    Raises:
        ValueError: a value is missing, unknown, inactive or outside its range; the message names it.
    """
    for _, message in value_errors(space, values):
        raise ValueError(message)
    return {parameter.name: values[parameter.name] for parameter in space if parameter.name in values}


def value_errors(space: Space, values: Values) -> Iterator[tuple[str, str]]:
    """Yield the errors in a configuration from a user: the hyperparameter's name and a message.

    A number must lie in its range, but need not lie on a step.
    """
    checked: dict[str, Value] = {}
    # Missing or wrong, or a child of such a hyperparameter: whether it is active is unknown.
    doubtful: set[str] = set()
    for parameter in space:
        name, has_value = parameter.name, parameter.name in values
        message = ""
        if any(condition.name in doubtful for condition in parameter.conditions()):
            doubtful.add(name)
        elif not parameter.is_active(checked):
            message = f"{name!r} is not active under these values; leave it out" if has_value else ""
        elif message := _value_error(parameter, values[name]) if has_value else f"{name!r} is missing":
            doubtful.add(name)
        else:
            checked[name] = values[name]
        if message:
            yield name, message
    for name in sorted(set(values) - {parameter.name for parameter in space}):
        yield name, f"{name!r} is not searched; leave it out"


def _value_error(parameter: Parameter, value: Value) -> str:
    """Return why a value is invalid for a hyperparameter; empty if it is valid."""
    if isinstance(parameter, IntParameter | FloatParameter):
        whole = not isinstance(parameter, IntParameter) or isinstance(value, int)
        # Compared without conversion: an integer of hundreds of digits has no float.
        inside = isinstance(value, int | float) and parameter.min <= value <= parameter.max
        if isinstance(value, bool) or not (whole and inside):
            expected = f"{parameter.kind} from {parameter.min} to {parameter.max}"
            return f"{parameter.name!r} must be {expected}, got {value!r}"
    elif value not in parameter.grid():
        return f"{parameter.name!r} must be one of {list(parameter.grid())!r}, got {value!r}"
    return ""
