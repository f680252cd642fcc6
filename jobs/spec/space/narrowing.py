"""Narrows a running search's space: the old space must contain every value in the new one.

A change names some hyperparameters and some fields in each. All others remain as they are.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Required, TypedDict

from pydantic import Field, TypeAdapter, ValidationError

from jobs.spec.problems import Problem, problems
from jobs.spec.space.hyperparameters import describe_values
from jobs.spec.space.search_space import (
    BooleanParameter,
    ChoiceParameter,
    FixedParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
    Value,
    Values,
)

CHECKED_VALUES = 1000
"""Steps are regular: if this many values lie on the old steps, all do."""

_PARAMETER: TypeAdapter[Parameter] = TypeAdapter(Parameter)


class NarrowedHyperparameter(TypedDict, total=False):
    """The new fields of a hyperparameter; the others stay as they are."""

    name: Required[str]
    kind: Annotated[str, Field(description="The present kind, or `fixed`.")]
    min: int | float
    max: int | float
    step: int | float
    values: list[Value]
    value: Annotated[Value, Field(description="Of the kind `fixed`.")]


class NotNarrower(ValueError):
    """A change that is invalid or would extend the space; `problems` contain JSON pointers."""

    def __init__(self, faults: Sequence[Problem]) -> None:
        super().__init__(faults[0].message)
        self.problems = tuple(faults)


def narrow_space(old: Space, sent: Sequence[Mapping[str, Any]], pointer: str = "/search/space") -> Space:
    """Narrow a space by the changes in `sent`.

    Hyperparameters whose conditions can no longer be met are removed.

    Args:
        old: the current space.
        sent: for each changed hyperparameter its `name` and its new `min`, `max`, `step` or `values`, or
            `{"kind": "fixed", "value": …}`.
        pointer: a JSON pointer to `sent` in the request body.

    Raises:
        NotNarrower: a name is unknown or used twice, or a value is not in the old space; lists all problems.
    """
    by_name = {parameter.name: parameter for parameter in old}
    new: dict[str, Parameter] = {}
    named: set[str] = set()
    faults: list[Problem] = []
    for i, body in enumerate(sent):
        name, here = body.get("name"), f"{pointer}/{i}"
        if not isinstance(name, str) or name not in by_name:
            names = ", ".join(by_name)
            faults.append(Problem(f"{here}/name", f"{name!r} is not searched; the search has {names}"))
        elif name in named:
            faults.append(Problem(f"{here}/name", f"{name!r} is used twice"))
        else:
            named.add(name)
            try:
                new[name] = _narrow_parameter(by_name[name], body, here)
            except NotNarrower as error:
                faults += error.problems
    if faults:
        raise NotNarrower(faults)
    return _without_inactive([new.get(parameter.name, parameter) for parameter in old])


def _narrow_parameter(old: Parameter, sent: Mapping[str, Any], here: str) -> Parameter:
    """Return one hyperparameter with a change.

    Raises:
        NotNarrower: the change is invalid or would extend the hyperparameter.
    """
    before = old.model_dump(mode="json", by_alias=True, exclude_none=True)
    kind = sent.get("kind", old.kind)
    if kind not in (old.kind, "fixed"):
        message = f"{old.name!r} is {old.kind}; its kind can only change to fixed, got {kind!r}"
        raise NotNarrower([Problem(f"{here}/kind", message)])
    # The old default may be outside the new range; `_with_default` restores it if it is not.
    kept_fields = before.keys() - {"default"} if kind == old.kind else {"when"}
    body = {**{name: value for name, value in before.items() if name in kept_fields}, **sent, "kind": kind}
    try:
        new = _PARAMETER.validate_python(body)
    except ValidationError as error:
        raise NotNarrower(problems(error, body, here)) from error
    if new.conditions() != old.conditions():
        message = f"the conditions of {old.name!r} cannot change; leave out when"
        raise NotNarrower([Problem(f"{here}/when", message)])
    if problem := _not_contained(old, new):
        field, message = problem
        raise NotNarrower([Problem(f"{here}/{field}", message)])
    if isinstance(old, ChoiceParameter) and isinstance(new, ChoiceParameter):
        # A grid search continues at its position only if the values keep their order.
        ordered = tuple(value for value in old.values if new.takes(value))
        new = new.model_copy(update={"values": ordered})
    return _with_default(old, new)


def _not_contained(old: Parameter, new: Parameter) -> tuple[str, str] | None:
    """Return a field in `new` with values outside `old` and a message, or None if there is none."""
    if isinstance(new, FixedParameter) and not old.takes(new.value):
        return "value", f"{new.value!r} is not a value of {old.name!r}: {describe_values(old)}"
    if isinstance(old, IntParameter | FloatParameter) and isinstance(new, IntParameter | FloatParameter):
        return _range_not_contained(old, new)
    if isinstance(new, ChoiceParameter):
        added = [value for value in new.values if not old.takes(value)]
        if added:
            return "values", f"{added!r} are not values of {old.name!r}: {describe_values(old)}"
    return None


def is_within(declared: Parameter, row: Parameter) -> bool:
    """Return whether a hyperparameter as code declares it has all values of a row in a search space."""
    is_list = isinstance(row, FixedParameter | ChoiceParameter)
    return (is_list or row.kind == declared.kind) and _not_contained(declared, row) is None


def _range_not_contained(
    old: IntParameter | FloatParameter, new: IntParameter | FloatParameter
) -> tuple[str, str] | None:
    if new.sampling != old.sampling:
        message = f"the sampling of {old.name!r} cannot change from {old.sampling!r} to {new.sampling!r}"
        return "sampling", message
    if new.min < old.min:
        return "min", f"{new.min} is below {old.min}, the minimum of {old.name!r}"
    if new.max > old.max:
        return "max", f"{new.max} is above {old.max}, the maximum of {old.name!r}"
    if old.step is None:
        return None
    if new.min != new.max and new.step is None:
        return "step", f"{old.name!r} has steps of {old.step}; give a multiple of it"
    # Under reverse_log sampling, the minimum itself need not be on a step.
    first = new.min if new.min == new.max else new.grid()[0]
    if not old.takes(first):
        return "min", f"{first} is not one of {describe_values(old)}"
    if not all(old.takes(value) for value in islice(new.grid(), CHECKED_VALUES)):
        return "step", f"steps of {new.step} include values that are not on the steps of {old.step}"
    return None


def _with_default(old: Parameter, new: Parameter) -> Parameter:
    """Return `new` with the old default if its values still contain it."""
    if isinstance(old, FixedParameter) or isinstance(new, FixedParameter):
        return new
    if new.default is None and old.default is not None and new.takes(old.default):
        return new.model_copy(update={"default": old.default})
    return new


def _without_inactive(space: Sequence[Parameter]) -> Space:
    """Remove impossible values from conditions, and hyperparameters that can no longer be active."""
    possible_parameters: dict[str, Parameter] = {}
    for parameter in space:
        possible = []
        for condition in parameter.conditions():
            parent = possible_parameters.get(condition.name)
            values = () if parent is None else tuple(value for value in condition.in_ if parent.takes(value))
            possible.append(condition.model_copy(update={"in_": values}))
        if all(condition.in_ for condition in possible):
            when = tuple(possible) if isinstance(parameter.when, tuple) else next(iter(possible), None)
            possible_parameters[parameter.name] = parameter.model_copy(update={"when": when})
    return tuple(possible_parameters.values())


def contains(space: Space, values: Values, *, on_grid: bool = False) -> bool:
    """Return whether a space contains a configuration.

    Args:
        space: a narrowed space.
        values: an earlier trial's configuration; names that are no longer in the space are ignored.
        on_grid: whether numbers must be grid points; otherwise they must lie in their ranges.
    """
    checked: dict[str, Value] = {}
    for parameter in space:
        if not parameter.is_active(checked):
            continue
        value = values.get(parameter.name)
        if value is None or not _has_value(parameter, value, on_grid=on_grid):
            return False
        checked[parameter.name] = value
    return True


def _has_value(parameter: Parameter, value: Value, *, on_grid: bool) -> bool:
    if isinstance(parameter, ChoiceParameter | BooleanParameter | FixedParameter):
        return parameter.takes(value)
    if on_grid:
        return value in parameter.grid()
    # The comparison is false for NaN.
    return not isinstance(value, bool | str) and parameter.min <= value <= parameter.max


def changes(old: Space, new: Space) -> list[str]:
    """Describe each changed hyperparameter in a sentence."""
    by_name = {parameter.name: parameter for parameter in new}
    sentences = []
    for parameter in old:
        now = by_name.get(parameter.name)
        if now is None:
            sentences.append(f"{parameter.name} is no longer searched: its condition can no longer be met")
            continue
        before, after = describe_values(parameter), describe_values(now)
        if before != after or type(now) is not type(parameter):
            verb = "is fixed at" if isinstance(now, FixedParameter) else "takes"
            sentences.append(f"{parameter.name} {verb} {after}, before {before}")
    return sentences
