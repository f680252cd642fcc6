"""Reads and writes KerasTuner's `HyperParameters.get_config()`.

The fields come from keras-tuner 1.4.8, `src/engine/hyperparameters` and `src/engine/conditions.py`.
"""

from collections.abc import Mapping
from typing import Any

from jobs.spec.formats.reading import FormatError, Item, Object, collect_errors
from jobs.spec.formats.result import (
    Imported,
    ParsedParameter,
    build_import,
    choice_values,
    parse_parameter,
)
from jobs.spec.problems import Problem
from jobs.spec.space.hyperparameters import (
    BooleanParameter,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    first_value,
)
from jobs.spec.space.ranges import Sampling
from jobs.spec.space.search_space import Space

KINDS = {"Int": "int", "Float": "float", "Boolean": "boolean", "Choice": "choice", "Fixed": "fixed"}
SAMPLINGS: tuple[Sampling, ...] = ("linear", "log", "reverse_log")


def looks_like(value: Mapping[str, Any]) -> bool:
    """Return whether an object has this format's keys."""
    rows = value.get("space")
    return isinstance(rows, list) and (not rows or (isinstance(rows[0], dict) and "class_name" in rows[0]))


def read(root: Item) -> Imported:
    """Read a space."""
    config = root.object()
    rows = config.require("space").items()
    values = config.get("values")
    config.reject_unknown()
    problems: list[Problem] = []
    notes: list[str] = []
    parameters: list[ParsedParameter] = []
    for row in rows:
        with collect_errors(problems):
            parameters.append(_parameter(row, notes))
    if problems:
        raise FormatError(problems)
    if values is not None:
        # `get_config` writes a current value for every hyperparameter; only unusual ones deserve a note.
        implied = {parsed.parameter.name: first_value(parsed.parameter) for parsed in parameters}
        if names := [name for name, item in values.object().entries() if implied.get(name) != item.value]:
            notes.append(f"values: ignored for {', '.join(names)}; they belong to a single trial")
    return build_import("keras_tuner", parameters, list(dict.fromkeys(notes)))


def _parameter(row: Item, notes: list[str]) -> ParsedParameter:
    entry = row.object()
    name_of_class = entry.require("class_name").one_of(KINDS)
    config = entry.require("config").object()
    entry.reject_unknown()
    fields = _FIELDS[name_of_class](config, notes)
    conditions = config.get("conditions")
    when = [_condition(item) for item in (conditions.items() if conditions is not None else [])]
    name = config.require("name").string()
    config.reject_unknown()
    return parse_parameter(row.pointer, name, KINDS[name_of_class], when=when, **fields)


def _condition(item: Item) -> dict[str, Any]:
    entry = item.object()
    entry.require("class_name").one_of(["Parent"])
    config = entry.require("config").object()
    entry.reject_unknown()
    values = config.require("values")
    parent_values = choice_values(values) if isinstance(values.value, list) else [values.scalar()]
    condition = {"name": config.require("name").string(), "in": parent_values}
    config.reject_unknown()
    return condition


def _range(config: Object, *, whole: bool) -> dict[str, Any]:
    def number(name: str, *, needed: bool = False) -> int | float | None:
        item = config.require(name) if needed else config.get(name)
        if item is None:
            return None
        return item.integer() if whole else item.number()

    sampling = config.get("sampling")
    low, default = number("min_value", needed=True), number("default")
    return {
        "min": low,
        "max": number("max_value", needed=True),
        "step": number("step"),
        # KerasTuner writes the minimum if no default was given.
        "default": None if default == low else default,
        "sampling": sampling.one_of(SAMPLINGS) if sampling is not None else None,
    }


def _int(config: Object, _: list[str]) -> dict[str, Any]:
    fields = _range(config, whole=True)
    # KerasTuner writes 1 if no step was given.
    if fields["step"] == 1 and fields["sampling"] in (None, "linear"):
        fields["step"] = None
    return fields


def _float(config: Object, _: list[str]) -> dict[str, Any]:
    return _range(config, whole=False)


def _boolean(config: Object, _: list[str]) -> dict[str, Any]:
    default = config.get("default")
    # KerasTuner writes false if no default was given.
    return {"default": True if default is not None and default.boolean() else None}


def _choice(config: Object, notes: list[str]) -> dict[str, Any]:
    values = choice_values(config.require("values"))
    default, ordered = config.get("default"), config.get("ordered")
    # KerasTuner's default: numbers are ordered, strings are not.
    usual = bool(values) and not isinstance(values[0], str)
    if ordered is not None and ordered.boolean() != usual:
        notes.append("ordered: ignored; no algorithm of KerasTuner uses it")
    chosen = default.scalar() if default is not None else None
    # As in `choice_values`, an integer among floats is a float.
    if isinstance(chosen, int) and values and isinstance(values[0], float):
        chosen = float(chosen)
    # KerasTuner writes the first value if no default was given.
    is_first = bool(values) and chosen == values[0]
    return {"values": values, "default": None if is_first else chosen}


def _fixed(config: Object, _: list[str]) -> dict[str, Any]:
    return {"value": config.require("value").scalar()}


_FIELDS = {"Int": _int, "Float": _float, "Boolean": _boolean, "Choice": _choice, "Fixed": _fixed}


def write(space: Space) -> dict[str, Any]:
    """Return a space in the form that `HyperParameters.from_config` accepts, without values."""
    return {"space": [_parameter_config(parameter) for parameter in space], "values": {}}


def _parameter_config(parameter: Parameter) -> dict[str, Any]:
    conditions = [
        {"class_name": "Parent", "config": {"name": when.name, "values": list(when.in_)}}
        for when in parameter.conditions()
    ]
    common = {"name": parameter.name, "conditions": conditions}
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
    default = parameter.values[0] if parameter.default is None else parameter.default
    # KerasTuner's `Choice` would convert booleans to numbers.
    if not isinstance(default, bool):
        ordered = not isinstance(default, str)
        config = {**common, "default": default, "values": list(parameter.values), "ordered": ordered}
        return {"class_name": "Choice", "config": config}
    if len(parameter.values) == 1:
        return {"class_name": "Fixed", "config": {**common, "value": default}}
    return {"class_name": "Boolean", "config": {**common, "default": default}}
