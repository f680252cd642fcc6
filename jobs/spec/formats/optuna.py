"""Reads Optuna's distributions: an object with one distribution per hyperparameter.

Each is written by `optuna.distributions.distribution_to_json`, as a string or as an object. The fields come
from optuna/distributions.py, including the classes deprecated in Optuna 3 and the short form with `type`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from jobs.spec.formats.reading import FormatError, Item, Object, collect_errors
from jobs.spec.formats.result import (
    Imported,
    ParsedParameter,
    build_import,
    choice_values,
    parse_parameter,
)
from jobs.spec.formats.text import parse
from jobs.spec.problems import Problem


def looks_like(value: Mapping[str, Any]) -> bool:
    """Return whether an object has this format's keys."""
    first = next(iter(value.values()), None)
    if isinstance(first, str):
        return '"attributes"' in first or '"type"' in first
    # A tuple can be asked for any value; a dict refuses lists and objects.
    return isinstance(first, dict) and ("attributes" in first or first.get("type") in tuple(_SHORT))


def read(root: Item) -> Imported:
    """Read an object with distributions."""
    problems: list[Problem] = []
    parameters: list[ParsedParameter] = []
    for name, item in root.object().entries():
        with collect_errors(problems):
            parameters.append(_parameter(name, item))
    if problems:
        raise FormatError(problems)
    return build_import("optuna", parameters)


def _parameter(name: str, item: Item) -> ParsedParameter:
    if isinstance(item.value, str):
        try:
            item = Item(parse(item.value), item.pointer)
        except FormatError as error:
            raise item.error(error.problems[0].message) from None
    entry = item.object()
    if entry.has("type"):
        kind, fields = _SHORT[entry.require("type").one_of(_SHORT)](entry)
    else:
        class_name = entry.require("name")
        attributes = entry.require("attributes").object()
        kind, fields = _CLASSES[class_name.one_of(_CLASSES)](attributes)
        attributes.reject_unknown()
    entry.reject_unknown()
    return parse_parameter(item.pointer, name, kind, **fields)


Fields = tuple[str, dict[str, Any]]


def _categorical(attributes: Object) -> Fields:
    return "choice", {"values": choice_values(attributes.require("choices"))}


def _float(attributes: Object) -> Fields:
    low, high = attributes.require("low").number(), attributes.require("high").number()
    step, log = attributes.get("step"), attributes.get("log")
    is_log = log is not None and log.boolean()
    if is_log and step is not None:
        raise step.error("Optuna does not allow a step together with log")
    fields = {"min": low, "max": high, "step": step.number() if step is not None else None}
    return "float", {**fields, "sampling": "log" if is_log else None}


def _int(attributes: Object) -> Fields:
    low, high = attributes.require("low").integer(), attributes.require("high").integer()
    step, log = attributes.get("step"), attributes.get("log")
    # Optuna writes 1 if no step was given.
    by = step.integer() if step is not None and step.integer() != 1 else None
    is_log = log is not None and log.boolean()
    if is_log and by is not None and step is not None:
        raise step.error("Optuna allows only step 1 together with log")
    return "int", {"min": low, "max": high, "step": by, "sampling": "log" if is_log else None}


def _log(read_linear: Callable[[Object], Fields]) -> Callable[[Object], Fields]:
    def read_log(attributes: Object) -> Fields:
        kind, fields = read_linear(attributes)
        if fields["step"] is not None:
            raise attributes.error("Optuna ignores the step of a logarithmic distribution; leave it out")
        return kind, {**fields, "sampling": "log"}

    return read_log


def _discrete(attributes: Object) -> Fields:
    kind, fields = _float(attributes)
    return kind, {**fields, "step": attributes.require("q").number()}


_SHORT: dict[str, Callable[[Object], Fields]] = {
    "float": _float,
    "int": _int,
    "categorical": _categorical,
}
_CLASSES: dict[str, Callable[[Object], Fields]] = {
    "FloatDistribution": _float,
    "IntDistribution": _int,
    "CategoricalDistribution": _categorical,
    "UniformDistribution": _float,
    "LogUniformDistribution": _log(_float),
    "DiscreteUniformDistribution": _discrete,
    "IntUniformDistribution": _int,
    "IntLogUniformDistribution": _log(_int),
}
