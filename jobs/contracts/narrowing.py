"""Makes the space of a search narrower while it runs: every new value must be one that was searched before.

What is sent need not be whole: hyperparameters that are not named stay as they are, and so does what is
left out of one that is named. Pure functions of two spaces, so pages, the API and tests agree.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import TypeAdapter, ValidationError

from jobs.contracts.hyperparameters import told
from jobs.contracts.problems import Problem, problems
from jobs.contracts.search_space import (
    BooleanParameter,
    ChoiceParameter,
    FixedParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
    Value,
    Values,
    When,
)

MOST_VALUES = 1000
"""Steps are regular: where so many of them fall on the old ones, all do."""

_PARAMETER: TypeAdapter[Parameter] = TypeAdapter(Parameter)


class Wider(ValueError):
    """What was sent is no part of the old space; `problems` say where."""

    def __init__(self, found: Sequence[Problem]) -> None:
        super().__init__(found[0].message)
        self.problems = tuple(found)


def narrowed(old: Space, sent: Sequence[Mapping[str, Any]], pointer: str = "/search/space") -> Space:
    """Return the old space with the hyperparameters in `sent` made narrower.

    What hangs on a value that is gone, and on no other, goes with it.

    Args:
        old: the space as it is.
        sent: by hyperparameter its `name` and what becomes of it: `min`, `max`, `step`, `values`, or
            `{"kind": "fixed", "value": …}`.
        pointer: where `sent` stands in the body.

    Raises:
        Wider: a name is new or is used twice, or a value was not searched before; names every place.
    """
    by_name = {parameter.name: parameter for parameter in old}
    new: dict[str, Parameter] = {}
    named: set[str] = set()
    found: list[Problem] = []
    for i, body in enumerate(sent):
        name, here = body.get("name"), f"{pointer}/{i}"
        if not isinstance(name, str) or name not in by_name:
            known = ", ".join(by_name)
            found.append(Problem(f"{here}/name", f"{name!r} is not searched; this search has {known}"))
        elif name in named:
            found.append(Problem(f"{here}/name", f"{name!r} is used twice"))
        else:
            named.add(name)
            try:
                new[name] = _one(by_name[name], body, here)
            except Wider as wider:
                found += wider.problems
    if found:
        raise Wider(found)
    return _without_dead_branches([new.get(parameter.name, parameter) for parameter in old])


def _one(old: Parameter, sent: Mapping[str, Any], here: str) -> Parameter:
    """Return one hyperparameter, checked."""
    before = old.model_dump(mode="json", by_alias=True, exclude_none=True)
    kind = sent.get("kind", old.kind)
    if kind not in (old.kind, "fixed"):
        raise Wider([Problem(f"{here}/kind", f"{old.name!r} stays {old.kind}, or becomes fixed")])
    keeps = before if kind == old.kind else {name: before[name] for name in ("when",) if name in before}
    keeps = {name: value for name, value in keeps.items() if name != "default"}
    body = {**keeps, **sent, "kind": kind}
    try:
        new = _PARAMETER.validate_python(body)
    except ValidationError as error:
        raise Wider(problems(error, body, here)) from error
    if new.conditions() != old.conditions():
        raise Wider([Problem(f"{here}/when", f"{old.name!r} hangs on what it hung on: leave it out")])
    if problem := _beyond(old, new):
        place, message = problem
        raise Wider([Problem(f"{here}/{place}", message)])
    return _with_default(old, _in_order(old, new))


def _beyond(old: Parameter, new: Parameter) -> tuple[str, str] | None:
    """Return what of the new one lies outside the old one: the field, and a sentence."""
    if isinstance(new, FixedParameter):
        return None if old.takes(new.value) else ("value", f"{new.value!r} is no value of {old.name!r}")
    if isinstance(old, IntParameter | FloatParameter) and isinstance(new, IntParameter | FloatParameter):
        return _range_beyond(old, new)
    if isinstance(new, ChoiceParameter):
        added = [value for value in new.values if not old.takes(value)]
        return ("values", f"{added!r} were not searched before") if added else None
    return None


def _range_beyond(
    old: IntParameter | FloatParameter, new: IntParameter | FloatParameter
) -> tuple[str, str] | None:
    if new.sampling != old.sampling:
        return "sampling", f"the scale of {old.name!r} stays {old.sampling}"
    if new.min < old.min:
        return "min", f"{new.min} is below {old.min}, where {old.name!r} began"
    if new.max > old.max:
        return "max", f"{new.max} is above {old.max}, where {old.name!r} ended"
    if old.step is None or new.min == new.max:
        return None if old.takes(new.min) or old.step is None else ("min", f"{new.min} is no step of before")
    if new.step is None:
        return "step", f"{old.name!r} has steps of {old.step}: give a step that falls on them"
    points = new.grid()
    if not old.takes(points[0]):
        return "min", f"{points[0]} is none of the steps of {old.step} from {old.min} to {old.max}"
    if not all(old.takes(value) for value in islice(points, MOST_VALUES)):
        return "step", f"steps of {new.step} do not fall on those of {old.step}"
    return None


def _in_order(old: Parameter, new: Parameter) -> Parameter:
    """Return choices in the order that they had: a grid goes on where it was."""
    if isinstance(old, ChoiceParameter) and isinstance(new, ChoiceParameter):
        return new.model_copy(update={"values": tuple(value for value in old.values if new.takes(value))})
    return new


def _with_default(old: Parameter, new: Parameter) -> Parameter:
    """Keep the default where it is still a value."""
    if isinstance(old, FixedParameter) or isinstance(new, FixedParameter):
        return new
    if new.default is None and old.default is not None and new.takes(old.default):
        return new.model_copy(update={"default": old.default})
    return new


def _without_dead_branches(space: Sequence[Parameter]) -> Space:
    """Leave out of every condition the values that cannot come any more, and what then never is active."""
    kept: dict[str, Parameter] = {}
    for parameter in space:
        alive = [_alive(condition, kept.get(condition.name)) for condition in parameter.conditions()]
        if all(condition.in_ for condition in alive):
            when = tuple(alive) if isinstance(parameter.when, tuple) else next(iter(alive), None)
            kept[parameter.name] = parameter.model_copy(update={"when": when})
    return tuple(kept.values())


def _alive(condition: When, parent: Parameter | None) -> When:
    values = () if parent is None else tuple(value for value in condition.in_ if parent.takes(value))
    return condition.model_copy(update={"in_": values})


def holds(space: Space, values: Values, *, on_grid: bool = False) -> bool:
    """Say whether a configuration lies in a space; names that the space lacks do not count.

    Args:
        space: the narrowed one.
        values: of a trial that was made before.
        on_grid: whether numbers must be points of the grid, not just lie in their ranges.
    """
    checked: dict[str, Value] = {}
    for parameter in space:
        if not parameter.is_active(checked):
            continue
        value = values.get(parameter.name)
        if value is None or not _has(parameter, value, on_grid=on_grid):
            return False
        checked[parameter.name] = value
    return True


def _has(parameter: Parameter, value: Value, *, on_grid: bool) -> bool:
    if isinstance(parameter, ChoiceParameter | BooleanParameter | FixedParameter):
        return parameter.takes(value)
    if on_grid:
        return value in parameter.grid()
    return not isinstance(value, bool | str) and parameter.min <= value <= parameter.max  # nan is in no range


def changes(old: Space, new: Space) -> list[str]:
    """Say in a sentence for each hyperparameter what narrowing did to it."""
    by_name = {parameter.name: parameter for parameter in new}
    said = []
    for parameter in old:
        now = by_name.get(parameter.name)
        if now is None:
            said.append(f"{parameter.name} is not searched any more: what it hung on is gone")
        elif told(now) != told(parameter) or type(now) is not type(parameter):
            verb = "is fixed at" if isinstance(now, FixedParameter) else "takes"
            said.append(f"{parameter.name} {verb} {told(now)}, before {told(parameter)}")
    return said
