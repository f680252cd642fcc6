"""Reads Kubeflow Katib's `Experiment` (kubeflow.org/v1beta1).

The fields come from pkg/apis/controller/experiments/v1beta1 and common/v1beta1. `feasibleSpace` contains its
numbers as strings. Steps are counted from the minimum.
"""

from collections.abc import Mapping
from typing import Any

from jobs.spec.formats.reading import FormatError, Item, Object, collect_errors
from jobs.spec.formats.result import (
    Imported,
    ParsedParameter,
    Part,
    build_import,
    parse_parameter,
)
from jobs.spec.problems import Problem

ALGORITHMS = {"random": "random", "grid": "grid", "bayesianoptimization": "bayesian", "tpe": "tpe"}
DIRECTIONS = {"minimize": "min", "maximize": "max"}
DISTRIBUTIONS = {"uniform": None, "unknown": None, "logUniform": "log"}
LAUNCH = ("trialTemplate", "metricsCollectorSpec", "resumePolicy")


def looks_like(value: Mapping[str, Any]) -> bool:
    """Return whether an object has this format's keys."""
    return value.get("kind") == "Experiment" or str(value.get("apiVersion", "")).startswith("kubeflow.org/")


def read(root: Item) -> Imported:
    """Read an experiment."""
    outer = root.object()
    if (kind := outer.get("kind")) is not None:
        kind.one_of(["Experiment"])
    spec = outer.require("spec").object()
    problems: list[Problem] = []
    with collect_errors(problems):
        outer.ignore("apiVersion", "metadata", "status", reason="")
        outer.reject_unknown()
    notes = spec.ignore(*LAUNCH, reason="ignored; concerns how Katib launches runs")
    parts: dict[str, Part] = {}
    for read_part in (_objective, _algorithm, _counts):
        with collect_errors(problems):
            parts |= read_part(spec)
    parameters: list[ParsedParameter] = []
    for row in spec.require("parameters").items():
        with collect_errors(problems):
            parameters.append(_parameter(row))
    with collect_errors(problems):
        spec.reject_unknown()
    if problems:
        raise FormatError(problems)
    return build_import("katib", parameters, notes, **parts)


def _counts(spec: Object) -> dict[str, Part]:
    trials, parallel, failed = map(spec.get, ("maxTrialCount", "parallelTrialCount", "maxFailedTrialCount"))
    parts = {}
    if trials is not None:
        parts["max_trials"] = Part(trials.integer(), trials.pointer)
    if parallel is not None:
        parts["parallel_trials"] = Part(parallel.integer(), parallel.pointer)
    if failed is not None:
        raise failed.error("not supported: it limits all failed trials; use max_consecutive_failures instead")
    return parts


def _objective(spec: Object) -> dict[str, Part]:
    item = spec.get("objective")
    if item is None:
        return {}
    objective = item.object()
    direction = DIRECTIONS[objective.require("type").one_of(DIRECTIONS)]
    metric = objective.require("objectiveMetricName")
    # Marked as read and ignored: Katib only records these metrics, and Trainyard records every metric.
    objective.get("additionalMetricNames")
    if (goal := objective.get("goal")) is not None:
        raise goal.error("not supported: a search runs all its trials; it does not stop at a goal")
    _check_strategies(objective.get("metricStrategies"), metric.string(), direction)
    objective.reject_unknown()
    return {"objective": Part({"metric": metric.string(), "direction": direction}, metric.pointer)}


def _check_strategies(strategies: Item | None, metric: str, direction: str) -> None:
    """Check that a trial's score is its best epoch, the only strategy that Trainyard has."""
    for item in strategies.items() if strategies is not None else []:
        strategy = item.object()
        name, value = strategy.require("name").string(), strategy.require("value")
        if name == metric and value.string() != direction:
            raise value.error(f"{value.value!r} is not supported: the score is the best epoch, {direction!r}")
        strategy.reject_unknown()


def _algorithm(spec: Object) -> dict[str, Part]:
    stopping, item = spec.get("earlyStopping"), spec.get("algorithm")
    if stopping is not None:
        raise stopping.error("not supported; set search.pruner after the import")
    if item is None:
        return {}
    algorithm = item.object()
    name = algorithm.require("algorithmName")
    parts = {"algorithm": Part(ALGORITHMS[name.one_of(ALGORITHMS)], name.pointer)}
    settings = algorithm.get("algorithmSettings")
    for setting_item in settings.items() if settings is not None else []:
        setting = setting_item.object()
        if setting.require("name").string() != "random_state":
            raise setting.error(f"the setting {setting.require('name').string()!r} is not supported")
        value = setting.require("value")
        parts["seed"] = Part(value.integer(), value.pointer)
        setting.reject_unknown()
    algorithm.reject_unknown()
    return parts


def _parameter(row: Item) -> ParsedParameter:
    entry = row.object()
    name = entry.require("name").string()
    kind = entry.require("parameterType").one_of(["int", "double", "discrete", "categorical"])
    feasible = entry.require("feasibleSpace").object()
    entry.reject_unknown()
    fields = _range(kind, feasible) if kind in ("int", "double") else {"values": _list(kind, feasible)}
    feasible.reject_unknown()
    return parse_parameter(row.pointer, name, {"int": "int", "double": "float"}.get(kind, "choice"), **fields)


def _range(kind: str, feasible: Object) -> dict[str, Any]:
    step, distribution = feasible.get("step"), feasible.get("distribution")
    if distribution is not None and distribution.string() not in DISTRIBUTIONS:
        raise distribution.error(f"{distribution.value!r} is not supported: use uniform or logUniform")
    sampling = DISTRIBUTIONS[distribution.string()] if distribution is not None else None
    low, high = feasible.require("min"), feasible.require("max")
    if kind == "double":
        by = step.number() if step is not None else None
        fields: dict[str, Any] = {"min": low.number(), "max": high.number(), "step": by}
    else:
        # A step of 1 changes nothing for an integer, but would be refused under logarithmic sampling.
        by = step.integer() if step is not None and step.integer() != 1 else None
        fields = {"min": low.integer(), "max": high.integer(), "step": by}
    if by is not None and step is not None and sampling is not None:
        raise step.error(
            "not supported with logUniform: Katib adds the step, a logarithmic range multiplies by it"
        )
    return {**fields, "sampling": sampling}


def _list(kind: str, feasible: Object) -> list[Any]:
    entries = feasible.require("list").items()
    if kind == "categorical":
        return [entry.string() for entry in entries]
    numbers = [entry.number() for entry in entries]
    # All values of a choice must have one type.
    return numbers if all(isinstance(n, int) for n in numbers) else [float(n) for n in numbers]
