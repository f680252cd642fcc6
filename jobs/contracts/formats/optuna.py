"""Optuna: distributions by name, each as `optuna.distributions.distribution_to_json` writes it.

Fields as in optuna/distributions.py, with the classes that Optuna 3 deprecated and the short form without a
class. A distribution may stand there as an object or, as that function returns it, as a text.
"""

from collections.abc import Callable, Mapping
from typing import Any

from jobs.contracts.formats.made import Imported, Made, imported, listed, made
from jobs.contracts.formats.reading import Item, Object, Refused, gathering
from jobs.contracts.formats.text import parse
from jobs.contracts.problems import Problem

SHORT = ("float", "int", "categorical")


def looks_like(value: Mapping[str, Any]) -> bool:
    """Say whether this is such a file."""
    first = next(iter(value.values()), None)
    if isinstance(first, str):
        return '"attributes"' in first or '"type"' in first
    return isinstance(first, dict) and ("attributes" in first or first.get("type") in SHORT)


def read(root: Item) -> Imported:
    """Read a table of distributions."""
    found: list[Problem] = []
    parameters: list[Made] = []
    for name, item in root.object().entries():
        with gathering(found):
            parameters.append(_parameter(name, item))
    if found:
        raise Refused(found)
    return imported("optuna", parameters)


def _parameter(name: str, item: Item) -> Made:
    if isinstance(item.value, str):
        try:
            item = Item(parse(item.value), item.pointer)
        except Refused as refused:
            raise item.refuse(refused.problems[0].message) from None
    entry = item.object()
    if entry.has("type"):
        kind, fields = _short(entry)
    else:
        of_class = entry.need("name")
        attributes = entry.need("attributes").object()
        kind, fields = _CLASSES[of_class.one_of(_CLASSES)](attributes)
        attributes.done()
    entry.done()
    return made(item.pointer, name, kind, **fields)


Fields = tuple[str, dict[str, Any]]


def _short(entry: Object) -> Fields:
    kind = entry.need("type").one_of(SHORT)
    return {"float": _float, "int": _int, "categorical": _categorical}[kind](entry)


def _categorical(attributes: Object) -> Fields:
    return "choice", {"values": listed(attributes.need("choices"))}


def _float(attributes: Object) -> Fields:
    low, high = attributes.need("low").number(), attributes.need("high").number()
    step, log = attributes.get("step"), attributes.get("log")
    is_log = log is not None and log.flag()
    if is_log and step is not None:
        raise step.refuse("Optuna has no step under log")
    fields = {"min": low, "max": high, "step": step.number() if step is not None else None}
    return "float", {**fields, "sampling": "log" if is_log else None}


def _int(attributes: Object) -> Fields:
    low, high = attributes.need("low").whole(), attributes.need("high").whole()
    step, log = attributes.get("step"), attributes.get("log")
    by = step.whole() if step is not None and step.whole() != 1 else None
    is_log = log is not None and log.flag()
    if is_log and by is not None and step is not None:
        raise step.refuse("Optuna has no step but 1 under log")
    return "int", {"min": low, "max": high, "step": by, "sampling": "log" if is_log else None}


def _log(read_linear: Callable[[Object], Fields]) -> Callable[[Object], Fields]:
    def read_log(attributes: Object) -> Fields:
        kind, fields = read_linear(attributes)
        if fields["step"] is not None:
            raise attributes.refuse("Optuna ignores a step under log")
        return kind, {**fields, "sampling": "log"}

    return read_log


def _discrete(attributes: Object) -> Fields:
    kind, fields = _float(attributes)
    return kind, {**fields, "step": attributes.need("q").number()}


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
