"""KerasTuner: the JSON of `HyperParameters.get_config()`, read and written.

Fields as in keras-tuner 1.4.8, `src/engine/hyperparameters` and `src/engine/conditions.py`.
"""

from collections.abc import Mapping
from typing import Any

from jobs.contracts.formats.made import Imported, Made, imported, listed, made
from jobs.contracts.formats.reading import Item, Object, Refused, gathering
from jobs.contracts.hyperparameters import (
    BooleanParameter,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    Value,
    When,
)
from jobs.contracts.problems import Problem
from jobs.contracts.ranges import Sampling
from jobs.contracts.search_space import Space

KINDS = {"Int": "int", "Float": "float", "Boolean": "boolean", "Choice": "choice", "Fixed": "fixed"}
SAMPLINGS: tuple[Sampling, ...] = ("linear", "log", "reverse_log")
UNORDERED = "ordered: no algorithm of KerasTuner looks at it"


def looks_like(value: Mapping[str, Any]) -> bool:
    """Say whether this is such a file."""
    rows = value.get("space")
    return isinstance(rows, list) and (not rows or (isinstance(rows[0], dict) and "class_name" in rows[0]))


def read(root: Item) -> Imported:
    """Read a space."""
    config = root.object()
    rows = config.need("space").items()
    values = config.get("values")
    config.done()
    found: list[Problem] = []
    notes: list[str] = []
    parameters: list[Made] = []
    for row in rows:
        with gathering(found):
            parameters.append(_parameter(row, notes))
    if found:
        raise Refused(found)
    if values is not None and (tried := _tried(values, parameters)):
        notes.append(f"values: {', '.join(tried)} stood at values of one trial; a space has none")
    return imported("keras_tuner", parameters, list(dict.fromkeys(notes)))


def _parameter(row: Item, notes: list[str]) -> Made:
    entry = row.object()
    name_of_class = entry.need("class_name").one_of(KINDS)
    config = entry.need("config").object()
    entry.done()
    fields = _FIELDS[name_of_class](config, notes)
    when = [_condition(item) for item in _optional(config, "conditions")]
    name = config.need("name").text()
    config.done()
    return made(row.pointer, name, KINDS[name_of_class], when=when, **fields)


def _optional(config: Object, name: str) -> list[Item]:
    found = config.get(name)
    return found.items() if found is not None else []


def _condition(item: Item) -> dict[str, Any]:
    entry = item.object()
    entry.need("class_name").one_of(["Parent"])
    config = entry.need("config").object()
    entry.done()
    values = config.need("values")
    wanted = listed(values) if isinstance(values.value, list) else [values.scalar()]
    condition = {"name": config.need("name").text(), "in": wanted}
    config.done()
    return condition


def _range(config: Object, *, whole: bool) -> dict[str, Any]:
    def number(name: str, *, needed: bool = False) -> int | float | None:
        item = config.need(name) if needed else config.get(name)
        if item is None:
            return None
        return item.whole() if whole else item.number()

    sampling = config.get("sampling")
    low, default = number("min_value", needed=True), number("default")
    return {
        "min": low,
        "max": number("max_value", needed=True),
        "step": number("step"),
        "default": None if default == low else default,  # the minimum is theirs if open
        "sampling": sampling.one_of(SAMPLINGS) if sampling is not None else None,
    }


def _int(config: Object, _: list[str]) -> dict[str, Any]:
    fields = _range(config, whole=True)
    if fields["step"] == 1 and fields["sampling"] in (None, "linear"):
        fields["step"] = None  # what KerasTuner writes where none was given
    return fields


def _float(config: Object, _: list[str]) -> dict[str, Any]:
    return _range(config, whole=False)


def _boolean(config: Object, _: list[str]) -> dict[str, Any]:
    default = config.get("default")
    return {"default": True if default is not None and default.flag() else None}  # false is theirs if open


def _choice(config: Object, notes: list[str]) -> dict[str, Any]:
    values = listed(config.need("values"))
    default, ordered = config.get("default"), config.get("ordered")
    usual = bool(values) and not isinstance(values[0], str)
    if ordered is not None and ordered.flag() != usual:
        notes.append(UNORDERED)
    chosen = default.scalar() if default is not None else None
    if isinstance(chosen, int) and values and isinstance(values[0], float):
        chosen = float(chosen)
    is_first = bool(values) and chosen == values[0]  # theirs if open
    return {"values": values, "default": None if is_first else chosen}


def _fixed(config: Object, _: list[str]) -> dict[str, Any]:
    return {"value": config.need("value").scalar()}


_FIELDS = {"Int": _int, "Float": _float, "Boolean": _boolean, "Choice": _choice, "Fixed": _fixed}


def _tried(values: Item, parameters: list[Made]) -> list[str]:
    """Return the names whose current value is not what the space itself begins with."""
    implied = {one.parameter.name: _implied(one.parameter) for one in parameters}
    return [name for name, item in values.object().entries() if implied.get(name) != item.value]


def _implied(parameter: Parameter) -> Value:
    default = getattr(parameter, "default", None)
    if default is not None:
        return default  # type: ignore[no-any-return]
    if isinstance(parameter, IntParameter | FloatParameter):
        return parameter.min
    return parameter.grid()[0]


def write(space: Space) -> dict[str, Any]:
    """Return the space as `HyperParameters.from_config` takes it; it holds no values."""
    return {"space": [_entry(parameter) for parameter in space], "values": {}}


def _entry(parameter: Parameter) -> dict[str, Any]:
    common = {"name": parameter.name, "conditions": [_parent(when) for when in parameter.conditions()]}
    if isinstance(parameter, IntParameter | FloatParameter):
        return {
            "class_name": parameter.kind.capitalize(),
            "config": {
                **common,
                "default": parameter.default,
                "min_value": parameter.min,
                "max_value": parameter.max,
                "step": parameter.step,
                "sampling": parameter.sampling,
            },
        }
    if isinstance(parameter, BooleanParameter):
        return {"class_name": "Boolean", "config": {**common, "default": bool(parameter.default)}}
    if isinstance(parameter, ChoiceParameter):
        return _written_choice(parameter, common)
    return {"class_name": "Fixed", "config": {**common, "value": parameter.value}}


def _written_choice(parameter: ChoiceParameter, common: dict[str, Any]) -> dict[str, Any]:
    """Write a choice; of true and false `Choice` would make numbers there."""
    default = parameter.values[0] if parameter.default is None else parameter.default
    if not isinstance(default, bool):
        ordered = not isinstance(default, str)
        config = {**common, "default": default, "values": list(parameter.values), "ordered": ordered}
        return {"class_name": "Choice", "config": config}
    if len(parameter.values) == 1:
        return {"class_name": "Fixed", "config": {**common, "value": default}}
    return {"class_name": "Boolean", "config": {**common, "default": default}}


def _parent(when: When) -> dict[str, Any]:
    return {"class_name": "Parent", "config": {"name": when.name, "values": list(when.in_)}}
