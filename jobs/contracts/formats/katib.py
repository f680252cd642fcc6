"""Kubeflow Katib: an `Experiment` of kubeflow.org/v1beta1, YAML or JSON.

Fields as in pkg/apis/controller/experiments/v1beta1 and common/v1beta1; `feasibleSpace` writes its numbers as
text. A step is added to the minimum.
"""

from collections.abc import Mapping
from typing import Any, get_args

from jobs.contracts.formats.made import Imported, Made, Part, imported, made
from jobs.contracts.formats.reading import Item, Object, Refused, gathering
from jobs.contracts.problems import Problem
from jobs.contracts.search import Algorithm

ALGORITHMS = {
    name: ours
    for name, ours in (
        ("random", "random"),
        ("grid", "grid"),
        ("bayesianoptimization", "bayesian"),
        ("tpe", "tpe"),
    )
    if ours in get_args(Algorithm)
}
DIRECTIONS = {"minimize": "min", "maximize": "max"}
DISTRIBUTIONS = {"uniform": None, "unknown": None, "logUniform": "log"}
COUNTS = ("maxTrialCount", "parallelTrialCount", "maxFailedTrialCount")
LAUNCH = ("trialTemplate", "metricsCollectorSpec", "resumePolicy")


def looks_like(value: Mapping[str, Any]) -> bool:
    """Say whether this is such a file."""
    return value.get("kind") == "Experiment" or str(value.get("apiVersion", "")).startswith("kubeflow.org/")


def read(root: Item) -> Imported:
    """Read an experiment."""
    outer = root.object()
    if (kind := outer.get("kind")) is not None:
        kind.one_of(["Experiment"])
    spec = outer.need("spec").object()
    found: list[Problem] = []
    with gathering(found):
        outer.left_out("apiVersion", "metadata", "status", why="")
        outer.done()
    notes = spec.left_out(*LAUNCH, why="how runs are launched there; not part of the search")
    parts: dict[str, Part] = {}
    for read_part in (_objective, _algorithm, _counts):
        with gathering(found):
            parts |= read_part(spec)
    parameters: list[Made] = []
    for row in spec.need("parameters").items():
        with gathering(found):
            parameters.append(_parameter(row))
    with gathering(found):
        spec.done()
    if found:
        raise Refused(found)
    return imported("katib", parameters, notes, **parts)


def _counts(spec: Object) -> dict[str, Part]:
    trials, parallel, failed = (spec.get(name) for name in COUNTS)
    parts = {}
    if trials is not None:
        parts["max_trials"] = Part(trials.whole(), trials.pointer)
    if parallel is not None:
        parts["parallel_trials"] = Part(parallel.whole(), parallel.pointer)
    if failed is not None:
        raise failed.refuse("it counts all failed trials; a search here gives up after failures in a row")
    return parts


def _objective(spec: Object) -> dict[str, Part]:
    item = spec.get("objective")
    if item is None:
        return {}
    objective = item.object()
    direction = DIRECTIONS[objective.need("type").one_of(DIRECTIONS)]
    metric = objective.need("objectiveMetricName")
    objective.get("additionalMetricNames")  # watched only; every metric is watched here
    if (goal := objective.get("goal")) is not None:
        raise goal.refuse("a search here does not end at a goal; it tries all its trials")
    _strategies(objective.get("metricStrategies"), metric.text(), direction)
    objective.done()
    return {"objective": Part({"metric": metric.text(), "direction": direction}, metric.pointer)}


def _strategies(strategies: Item | None, metric: str, direction: str) -> None:
    """Check how the objective's value is taken from its curve: the best epoch's is the only way here."""
    for item in strategies.items() if strategies is not None else []:
        strategy = item.object()
        name, value = strategy.need("name").text(), strategy.need("value")
        if name == metric and value.text() != direction:
            raise value.refuse(f"an execution is scored by its best epoch here: {direction}")
        strategy.done()


def _algorithm(spec: Object) -> dict[str, Part]:
    stopping, item = spec.get("earlyStopping"), spec.get("algorithm")
    if stopping is not None:
        raise stopping.refuse("trials are not stopped by that rule here")
    if item is None:
        return {}
    algorithm = item.object()
    name = algorithm.need("algorithmName")
    parts = {"algorithm": Part(ALGORITHMS[name.one_of(ALGORITHMS)], name.pointer)}
    settings = algorithm.get("algorithmSettings")
    for setting_item in settings.items() if settings is not None else []:
        setting = setting_item.object()
        if setting.need("name").text() != "random_state":
            raise setting.refuse(f"the setting {setting.need('name').text()!r} has no counterpart here")
        value = setting.need("value")
        parts["seed"] = Part(value.whole(), value.pointer)
        setting.done()
    algorithm.done()
    return parts


def _parameter(row: Item) -> Made:
    entry = row.object()
    name = entry.need("name").text()
    kind = entry.need("parameterType").one_of(["int", "double", "discrete", "categorical"])
    feasible = entry.need("feasibleSpace").object()
    entry.done()
    fields = _range(kind, feasible) if kind in ("int", "double") else {"values": _list(kind, feasible)}
    feasible.done()
    return made(row.pointer, name, {"int": "int", "double": "float"}.get(kind, "choice"), **fields)


def _range(kind: str, feasible: Object) -> dict[str, Any]:
    step, distribution = feasible.get("step"), feasible.get("distribution")
    if distribution is not None and distribution.text() not in DISTRIBUTIONS:
        raise distribution.refuse(
            f"{distribution.value!r} has no counterpart here: only uniform and logUniform"
        )
    sampling = DISTRIBUTIONS[distribution.text()] if distribution is not None else None
    low, high = feasible.need("min"), feasible.need("max")
    if kind == "double":
        by = step.number() if step is not None else None
        fields: dict[str, Any] = {"min": low.number(), "max": high.number(), "step": by}
    else:
        by = step.whole() if step is not None and step.whole() != 1 else None
        fields = {"min": low.whole(), "max": high.whole(), "step": by}
    if by is not None and step is not None and sampling is not None:
        raise step.refuse("it is added after drawing under logUniform; a step here multiplies under log")
    return {**fields, "sampling": sampling}


def _list(kind: str, feasible: Object) -> list[Any]:
    entries = feasible.need("list").items()
    if kind == "categorical":
        return [entry.text() for entry in entries]
    numbers = [entry.number() for entry in entries]
    return numbers if all(isinstance(n, int) for n in numbers) else [float(n) for n in numbers]
