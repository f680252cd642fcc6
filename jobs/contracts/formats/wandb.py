"""Weights & Biases: a sweep configuration, YAML or JSON.

Keys and distributions as in the schema of wandb/sweeps (`config/schema.json`); how each distribution draws,
as in its `params.py`. `inv_log_uniform` is a log-uniform distribution written the other way round: if
log(1/x) is uniform, so is log(x).
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

from jobs.contracts.formats.made import Imported, Made, Part, imported, listed, made
from jobs.contracts.formats.reading import Item, Object, Refused, gathering
from jobs.contracts.problems import Problem
from jobs.contracts.search import Algorithm

ALGORITHMS = {"random": "random", "grid": "grid", "bayes": "bayesian"}
DIRECTIONS = {"minimize": "min", "maximize": "max"}
LAUNCH = (
    *("program", "command", "job", "image_uri", "project", "entity", "controller"),
    *("name", "description", "apiVersion", "kind"),
)
CUT = "a trial is not cut short by that rule here"
NESTED = "nested names are joined with /"
ENDS = "under q_uniform the two outermost values come up half as often; here all are alike"


def looks_like(value: Mapping[str, Any]) -> bool:
    """Say whether this is such a file."""
    return "method" in value or isinstance(value.get("parameters"), dict)


def read(root: Item) -> Imported:
    """Read a sweep."""
    sweep = root.object()
    notes = sweep.left_out(*LAUNCH, why="how runs are launched and called there; not part of the search")
    found: list[Problem] = []
    parts: dict[str, Part] = {}
    for read_part in (_method, _metric):
        with gathering(found):
            parts |= read_part(sweep)
    parameters: list[Made] = []
    with gathering(found):
        _parameters(sweep.need("parameters"), "", parameters, notes, found)
    if (cut := sweep.get("early_terminate")) is not None:
        found.append(Problem(cut.pointer, CUT))
    with gathering(found):
        sweep.done()
    if found:
        raise Refused(found)
    return imported("wandb", parameters, list(dict.fromkeys(notes)), **parts)


def _method(sweep: Object) -> dict[str, Part]:
    cap, method = sweep.get("run_cap"), sweep.need("method")
    offered = [name for name, ours in ALGORITHMS.items() if ours in get_args(Algorithm)]
    parts = {"algorithm": Part(ALGORITHMS[method.one_of(offered)], method.pointer)}
    if cap is not None:
        parts["max_trials"] = Part(cap.whole(), cap.pointer)
    return parts


def _metric(sweep: Object) -> dict[str, Part]:
    item = sweep.get("metric")
    if item is None:
        return {}
    metric = item.object()
    name, goal, target = metric.need("name"), metric.get("goal"), metric.get("target")
    if target is not None:
        raise target.refuse("a search here does not end at a target; it tries all its trials")
    metric.done()
    direction = DIRECTIONS[goal.one_of(DIRECTIONS)] if goal is not None else "min"
    return {"objective": Part({"metric": name.text(), "direction": direction}, name.pointer)}


def _parameters(
    item: Item, prefix: str, parameters: list[Made], notes: list[str], found: list[Problem]
) -> None:
    for name, row in item.object().entries():
        with gathering(found):
            entry = row.object()
            if entry.has("parameters"):
                inner = entry.need("parameters")
                entry.done()
                notes.append(NESTED)
                _parameters(inner, f"{prefix}{name}/", parameters, notes, found)
            else:
                parameters.append(_parameter(row, entry, prefix + name, notes))


def _parameter(row: Item, entry: Object, name: str, notes: list[str]) -> Made:
    distribution = entry.get("distribution")
    if distribution is None:
        kind, fields = _implied(entry)
    elif distribution.text() in _READERS:
        kind, fields = _READERS[distribution.text()](entry, notes)
    else:
        raise distribution.refuse(
            f"{distribution.value!r} has no counterpart here: take {', '.join(_READERS)}"
        )
    entry.done()
    return made(row.pointer, name, kind, **fields)


Fields = tuple[str, dict[str, Any]]


def _implied(entry: Object) -> Fields:
    """Read a parameter without a distribution as W&B does."""
    if entry.has("values"):
        return _categorical(entry, [])
    if entry.has("value"):
        return _constant(entry, [])
    low, high = entry.need("min"), entry.need("max")
    is_whole = isinstance(low.number(), int) and isinstance(high.number(), int)
    return ("int" if is_whole else "float"), {"min": low.number(), "max": high.number()}


def _constant(entry: Object, _: list[str]) -> Fields:
    return "fixed", {"value": entry.need("value").scalar()}


def _categorical(entry: Object, _: list[str]) -> Fields:
    values = entry.need("values")
    if (probabilities := entry.get("probabilities")) is not None:
        raise probabilities.refuse("all values of a list are equally likely here")
    return "choice", {"values": listed(values)}


def _int_uniform(entry: Object, _: list[str]) -> Fields:
    return "int", {"min": entry.need("min").whole(), "max": entry.need("max").whole()}


def _uniform(entry: Object, _: list[str]) -> Fields:
    return "float", {"min": entry.need("min").number(), "max": entry.need("max").number()}


def _log_uniform_values(entry: Object, _: list[str]) -> Fields:
    kind, fields = _uniform(entry, [])
    return kind, {**fields, "sampling": "log"}


def _of_exponents(low: str, high: str, sign: int) -> Callable[[Object, list[str]], Fields]:
    """Return a reader of bounds that are written as exponents of e."""

    def read_exponents(entry: Object, notes: list[str]) -> Fields:
        bounds = []
        for name in (low, high):
            item = entry.need(name)
            if abs(item.number()) > 600:
                raise item.refuse(f"it is an exponent of e: e to the {item.number():g} is no number here")
            bounds.append(math.exp(sign * item.number()))
        notes.append("bounds under log_uniform and inv_log_uniform are exponents of e and written out")
        return "float", {"min": bounds[0], "max": bounds[1], "sampling": "log"}

    return read_exponents


def _q_uniform(entry: Object, notes: list[str]) -> Fields:
    """Read a range rounded to multiples of q: our step, if the bounds are such multiples."""
    low, high, q = entry.need("min"), entry.need("max"), entry.get("q")
    by = q.number() if q is not None else 1.0
    if by <= 0:
        raise (q or low).refuse("q must be above 0")
    for bound in (low, high):
        times = bound.number() / by
        if not math.isfinite(times) or abs(times - round(times)) > 1e-9:
            raise bound.refuse(f"it is no multiple of q = {by:g}: a step here is counted from the minimum")
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
    "log_uniform": _of_exponents("min", "max", 1),
    "inv_log_uniform": _of_exponents("max", "min", -1),
    "q_uniform": _q_uniform,
}
