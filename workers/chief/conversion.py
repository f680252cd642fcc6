"""Converts between KerasTuner's messages and Trainyard's spaces, values, metrics and trials."""

from collections.abc import Iterable, Mapping
from typing import Any

from jobs.queries.search.script_reports import Best, Reported
from jobs.spec.formats import keras_tuner
from jobs.spec.space.hyperparameters import ChoiceParameter, FixedParameter, Parameter, Value
from jobs.spec.space.search_space import Space
from workers.chief import protocol

KINDS = ("Fixed", "Float", "Int", "Choice", "Boolean")
HyperParameters = protocol.message("HyperParameters")
Trial = protocol.message("Trial")


def config(message: Any) -> dict[str, Any]:
    """Return the space in a HyperParameters message as KerasTuner's JSON, parents before their children.

    The message groups hyperparameters by kind, so the order in which the script defined them is lost.
    """
    entries = [_entry(kind, row) for kind in KINDS for row in getattr(message.space, f"{kind.lower()}_space")]
    return {"space": _parents_first(entries)}


def _entry(kind: str, row: Any) -> dict[str, Any]:
    parents = [condition.parent for condition in row.conditions]
    conditions = [
        {
            "class_name": "Parent",
            "config": {"name": parent.name, "values": [plain(value) for value in parent.values]},
        }
        for parent in parents
    ]
    fields: dict[str, Any] = {"name": row.name, "conditions": conditions}
    match kind:
        case "Fixed":
            fields["value"] = plain(row.value)
        case "Boolean":
            fields["default"] = row.default
        case "Choice":
            fields |= {"values": [plain(value) for value in row.values], "ordered": row.ordered}
            fields["default"] = plain(row.default)
        case _:
            sampling = protocol.member_of("Sampling", row.sampling).lower()
            fields |= {"min_value": row.min_value, "max_value": row.max_value, "default": row.default}
            # proto3 does not distinguish a missing number from 0, which is no valid step.
            fields |= {"step": row.step or None, "sampling": None if sampling == "none" else sampling}
    return {"class_name": kind, "config": fields}


def _parents_first(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ordered: list[dict[str, Any]] = []
    names: set[str] = set()
    remaining = entries
    while remaining:
        ready = [
            entry
            for entry in remaining
            if names.issuperset(condition["config"]["name"] for condition in entry["config"]["conditions"])
        ]
        # Nothing is ready if the conditions form a cycle. The validation of the space refuses that.
        ready = ready or remaining
        ordered += ready
        names |= {entry["config"]["name"] for entry in ready}
        remaining = [entry for entry in remaining if entry not in ready]
    return ordered


def plain(message: Any) -> Value | None:
    """Return the value in a Value message; None if it is empty."""
    kind = message.WhichOneof("kind")
    return getattr(message, kind) if kind else None


def values(message: Any) -> dict[str, Value]:
    """Return the values in a HyperParameters message."""
    pairs = ((name, plain(value)) for name, value in message.values.values.items())
    return {name: value for name, value in pairs if value is not None}


def hyperparameters(space: Space, values_by_name: Mapping[str, Value]) -> Any:
    """Return a HyperParameters message with a space and one trial's values."""
    message = HyperParameters()
    for entry in keras_tuner.write(space)["space"]:
        kind = entry["class_name"]
        _fill(getattr(message.space, f"{kind.lower()}_space").add(), kind, entry["config"])
    parameters = {parameter.name: parameter for parameter in space}
    for name, value in values_by_name.items():
        _set(message.values.values[name], _cast_value(parameters.get(name), value))
    return message


def _fill(row: Any, kind: str, fields: Mapping[str, Any]) -> None:
    row.name = fields["name"]
    for condition in fields["conditions"]:
        parent = row.conditions.add().parent
        parent.name = condition["config"]["name"]
        for value in condition["config"]["values"]:
            _set(parent.values.add(), value)
    match kind:
        case "Fixed":
            _set(row.value, fields["value"])
        case "Boolean":
            row.default = fields["default"]
        case "Choice":
            for value in fields["values"]:
                _set(row.values.add(), value)
            _set(row.default, fields["default"])
            row.ordered = fields["ordered"]
        case _:
            default = fields["min_value"] if fields["default"] is None else fields["default"]
            row.min_value, row.max_value, row.default = fields["min_value"], fields["max_value"], default
            row.step = fields["step"] or 0
            row.sampling = protocol.number_of("Sampling", (fields["sampling"] or "none").upper())


def _cast_value(parameter: Parameter | None, value: Value) -> Value:
    """Return a value in the type that its hyperparameter has."""
    # JSON may have stored 1.0 as 1, but a Value message distinguishes the two.
    if parameter is None or isinstance(value, bool | str):
        return value
    if isinstance(parameter, ChoiceParameter):
        return type(parameter.values[0])(value)
    if isinstance(parameter, FixedParameter):
        return type(parameter.value)(value)
    return float(value) if parameter.kind == "float" else value


def _set(message: Any, value: Value) -> None:
    kinds = {bool: "boolean_value", int: "int_value", float: "float_value", str: "string_value"}
    setattr(message, kinds[type(value)], value)


def trial(
    name: str,
    status: str,
    *,
    space: Space = (),
    values_by_name: Mapping[str, Value] | None = None,
    reported: Reported | None = None,
    maximized: Iterable[str] = (),
    best: Best | None = None,
) -> Any:
    """Return a Trial message."""
    message = Trial(trial_id=name, status=protocol.number_of("TrialStatus", status))
    message.hyperparameters.CopyFrom(hyperparameters(space, values_by_name or {}))
    for metric, steps in (reported or {}).items():
        history = message.metrics.metrics[metric]
        history.maximize = metric in maximized
        for step, observed in sorted(steps.items()):
            history.observations.add(value=observed, step=step)
    if best is not None:
        message.score.value, message.score.step = best.score, best.step
    return message
