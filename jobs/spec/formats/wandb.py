"""Reads a Weights & Biases sweep configuration.

The keys come from wandb/sweeps' `config/schema.json`, and the distributions behave as in its `params.py`.
`inv_log_uniform` is read as log-uniform: if log(1/x) is uniform, so is log(x).
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from jobs.spec.formats.reading import FormatError, Item, Object, collect_errors
from jobs.spec.formats.result import (
    Imported,
    ParsedParameter,
    Part,
    build_import,
    choice_values,
    parse_parameter,
)
from jobs.spec.problems import Problem

ALGORITHMS = {"random": "random", "grid": "grid", "bayes": "bayesian"}
DIRECTIONS = {"minimize": "min", "maximize": "max"}
LAUNCH = (
    *("program", "command", "job", "image_uri", "project", "entity", "controller"),
    *("name", "description", "apiVersion", "kind"),
)
ENDS = (
    "q_uniform: W&B draws the lowest and the highest value half as often; here all values are equally likely"
)


def looks_like(value: Mapping[str, Any]) -> bool:
    """Return whether an object has this format's keys."""
    return "method" in value or isinstance(value.get("parameters"), dict)


def read(root: Item) -> Imported:
    """Read a sweep."""
    sweep = root.object()
    notes = sweep.ignore(*LAUNCH, reason="ignored; concerns how W&B names and launches runs")
    problems: list[Problem] = []
    parts: dict[str, Part] = {}
    for read_part in (_method, _metric):
        with collect_errors(problems):
            parts |= read_part(sweep)
    parameters: list[ParsedParameter] = []
    with collect_errors(problems):
        _parameters(sweep.require("parameters"), "", parameters, notes, problems)
    if (early := sweep.get("early_terminate")) is not None:
        problems.append(Problem(early.pointer, "not supported; set search.pruner after the import"))
    with collect_errors(problems):
        sweep.reject_unknown()
    if problems:
        raise FormatError(problems)
    return build_import("wandb", parameters, list(dict.fromkeys(notes)), **parts)


def _method(sweep: Object) -> dict[str, Part]:
    cap, method = sweep.get("run_cap"), sweep.require("method")
    parts = {"algorithm": Part(ALGORITHMS[method.one_of(ALGORITHMS)], method.pointer)}
    if cap is not None:
        parts["max_trials"] = Part(cap.integer(), cap.pointer)
    return parts


def _metric(sweep: Object) -> dict[str, Part]:
    item = sweep.get("metric")
    if item is None:
        return {}
    metric = item.object()
    name, goal, target = metric.require("name"), metric.get("goal"), metric.get("target")
    if target is not None:
        raise target.error("not supported: a search runs all its trials; it does not stop at a target")
    metric.reject_unknown()
    direction = DIRECTIONS[goal.one_of(DIRECTIONS)] if goal is not None else "min"
    return {"objective": Part({"metric": name.string(), "direction": direction}, name.pointer)}


def _parameters(
    item: Item, prefix: str, parameters: list[ParsedParameter], notes: list[str], problems: list[Problem]
) -> None:
    for name, row in item.object().entries():
        with collect_errors(problems):
            entry = row.object()
            if entry.has("parameters"):
                inner = entry.require("parameters")
                entry.reject_unknown()
                notes.append("nested parameters: their names are joined with /")
                _parameters(inner, f"{prefix}{name}/", parameters, notes, problems)
            else:
                parameters.append(_parameter(row, entry, prefix + name, notes))


def _parameter(row: Item, entry: Object, name: str, notes: list[str]) -> ParsedParameter:
    distribution = entry.get("distribution")
    if distribution is None:
        kind, fields = _implied(entry)
    elif distribution.string() in _READERS:
        kind, fields = _READERS[distribution.string()](entry, notes)
    else:
        raise distribution.error(f"{distribution.value!r} is not supported: use one of {', '.join(_READERS)}")
    entry.reject_unknown()
    return parse_parameter(row.pointer, name, kind, **fields)


Fields = tuple[str, dict[str, Any]]


def _implied(entry: Object) -> Fields:
    """Read a parameter without a distribution, with W&B's rules for the default distribution."""
    if entry.has("values"):
        return _categorical(entry, [])
    if entry.has("value"):
        return _constant(entry, [])
    low, high = entry.require("min"), entry.require("max")
    is_whole = isinstance(low.number(), int) and isinstance(high.number(), int)
    return ("int" if is_whole else "float"), {"min": low.number(), "max": high.number()}


def _constant(entry: Object, _: list[str]) -> Fields:
    return "fixed", {"value": entry.require("value").scalar()}


def _categorical(entry: Object, _: list[str]) -> Fields:
    values = entry.require("values")
    if (probabilities := entry.get("probabilities")) is not None:
        raise probabilities.error("not supported: all values of a choice are equally likely")
    return "choice", {"values": choice_values(values)}


def _int_uniform(entry: Object, _: list[str]) -> Fields:
    return "int", {"min": entry.require("min").integer(), "max": entry.require("max").integer()}


def _uniform(entry: Object, _: list[str]) -> Fields:
    return "float", {"min": entry.require("min").number(), "max": entry.require("max").number()}


def _log_uniform_values(entry: Object, _: list[str]) -> Fields:
    kind, fields = _uniform(entry, [])
    return kind, {**fields, "sampling": "log"}


def _exponents(low: str, high: str, sign: int) -> Callable[[Object, list[str]], Fields]:
    """Return a function that reads bounds as exponents of e."""

    def read_exponents(entry: Object, notes: list[str]) -> Fields:
        bounds = []
        for name in (low, high):
            item = entry.require(name)
            # A double is at most about e^709.
            if abs(item.number()) > 600:
                raise item.error(f"the bound is an exponent of e, and e^{item.number():g} is out of range")
            bounds.append(math.exp(sign * item.number()))
        notes.append(
            "log_uniform, inv_log_uniform: the bounds are exponents of e and were converted to values"
        )
        return "float", {"min": bounds[0], "max": bounds[1], "sampling": "log"}

    return read_exponents


def _q_uniform(entry: Object, notes: list[str]) -> Fields:
    """Read a range rounded to multiples of q, which is a range with step q if its bounds are multiples."""
    low, high, q = entry.require("min"), entry.require("max"), entry.get("q")
    by = q.number() if q is not None else 1.0
    if by <= 0:
        raise (q or low).error(f"q must be above 0, got {by:g}")
    for bound in (low, high):
        times = bound.number() / by
        # The tolerance allows for rounding: 0.3 / 0.1 is not exactly 3.
        if not math.isfinite(times) or abs(times - round(times)) > 1e-9:
            raise bound.error(f"{bound.value!r} is not a multiple of q = {by:g}")
    notes.append(ENDS)
    bounds = {"min": low.number(), "max": high.number(), "step": by}
    if isinstance(by, int):
        return "int", {key: round(value) for key, value in bounds.items()}
    return "float", {key: float(value) for key, value in bounds.items()}


_READERS: dict[str, Callable[[Object, list[str]], Fields]] = {
    "constant": _constant,
    "categorical": _categorical,
    "int_uniform": _int_uniform,
    "uniform": _uniform,
    "log_uniform_values": _log_uniform_values,
    "inv_log_uniform_values": _log_uniform_values,
    "log_uniform": _exponents("min", "max", 1),
    "inv_log_uniform": _exponents("max", "min", -1),
    "q_uniform": _q_uniform,
}
