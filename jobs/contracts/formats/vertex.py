"""Google Vertex AI: a `StudySpec`, alone or inside of a Study or a HyperparameterTuningJob, JSON or YAML.

Fields as in google/cloud/aiplatform/v1/study.proto. JSON may name them in camel or in snake case and may
write 64-bit numbers as text, as protobuf's JSON form allows.
"""

import re
from collections.abc import Mapping
from typing import Any

from jobs.contracts.formats.made import Imported, Made, Part, imported, listed, made
from jobs.contracts.formats.reading import Item, Object, Refused, gathering
from jobs.contracts.problems import Problem, escaped

SCALES = {
    "SCALE_TYPE_UNSPECIFIED": None,
    "UNIT_LINEAR_SCALE": None,
    "UNIT_LOG_SCALE": "log",
    "UNIT_REVERSE_LOG_SCALE": "reverse_log",
}
DIRECTIONS = {"GOAL_TYPE_UNSPECIFIED": "max", "MAXIMIZE": "max", "MINIMIZE": "min"}
ALGORITHMS = {"GRID_SEARCH": "grid", "RANDOM_SEARCH": "random"}
PARENTS = ("parentDiscreteValues", "parentIntValues", "parentCategoricalValues")
KINDS = ("doubleValueSpec", "integerValueSpec", "categoricalValueSpec", "discreteValueSpec")
AROUND = (
    "name",
    "displayName",
    "state",
    "createTime",
    "startTime",
    "endTime",
    "updateTime",
    "inactiveReason",
)
LAUNCH = ("trialJobSpec", "labels", "encryptionSpec", "trials", "error")


def looks_like(value: Mapping[str, Any]) -> bool:
    """Say whether this is such a file."""
    value = {_camel(key): inner for key, inner in value.items()}
    rows = value.get("parameters")
    return "studySpec" in value or _has_ids(rows) or (isinstance(rows, list) and "metrics" in value)


def _has_ids(rows: Any) -> bool:
    first = rows[0] if isinstance(rows, list) and rows else None
    return isinstance(first, dict) and ("parameterId" in first or "parameter_id" in first)


def read(root: Item) -> Imported:
    """Read a study."""
    outer = _object(root)
    notes: list[str] = []
    parts: dict[str, Part] = {}
    study = outer
    if outer.has("studySpec"):
        study = _object(outer.need("studySpec"))
        for theirs, ours in (("maxTrialCount", "max_trials"), ("parallelTrialCount", "parallel_trials")):
            if (item := outer.get(theirs)) is not None:
                parts[ours] = Part(item.whole(), item.pointer)
        notes += outer.left_out(*AROUND, *LAUNCH, why="not part of the search")
        outer.done()
    found: list[Problem] = []
    with gathering(found):
        parts |= _search(study, notes)
    parameters: list[Made] = []
    rows = study.get("parameters")
    for row in rows.items() if rows is not None else []:
        with gathering(found):
            _parameter(row, None, parameters, found)
    with gathering(found):
        study.done()
    if found:
        raise Refused(found)
    return imported("vertex", parameters, notes, **parts)


def _search(study: Object, notes: list[str]) -> dict[str, Part]:
    parts: dict[str, Part] = {}
    metrics, algorithm = study.get("metrics"), study.get("algorithm")
    noise, selection = study.get("observationNoise"), study.get("measurementSelectionType")
    if metrics is not None:
        parts["objective"] = _objective(metrics)
    if algorithm is not None and algorithm.one_of(["ALGORITHM_UNSPECIFIED", *ALGORITHMS]) in ALGORITHMS:
        parts["algorithm"] = Part(ALGORITHMS[algorithm.text()], algorithm.pointer)
    else:
        notes.append("algorithm: none is named, and Vertex AI's own is not offered here; choose one")
    if noise is not None and noise.one_of(["OBSERVATION_NOISE_UNSPECIFIED", "LOW", "HIGH"]) == "HIGH":
        raise noise.refuse("no configuration is tried twice here; use executions_per_trial instead")
    if selection is not None and selection.value not in (
        "BEST_MEASUREMENT",
        "MEASUREMENT_SELECTION_TYPE_UNSPECIFIED",
    ):
        raise selection.refuse("an execution is scored by its best epoch here, not by its last")
    return parts


def _objective(metrics: Item) -> Part:
    rows = metrics.items()
    if len(rows) != 1:
        raise metrics.refuse(f"{len(rows)} metrics; a search here has one objective")
    row = _object(rows[0])
    goal = row.get("goal")
    direction = DIRECTIONS[goal.one_of(DIRECTIONS)] if goal is not None else "max"
    metric = row.need("metricId")
    row.done()
    return Part({"metric": metric.text(), "direction": direction}, metric.pointer)


def _parameter(row: Item, when: Any, parameters: list[Made], found: list[Problem]) -> None:
    """Read a parameter and, after it, those that depend on it."""
    entry = _object(row)
    name = entry.need("parameterId").text()
    kinds = [kind for kind in KINDS if entry.has(kind)]
    if len(kinds) != 1:
        raise entry.refuse(f"exactly one of {', '.join(KINDS)} says what it is")
    scale = entry.get("scaleType")
    kind, fields = _value_spec(kinds[0], _object(entry.need(kinds[0])), scale)
    conditional = entry.get("conditionalParameterSpecs")
    entry.done()
    parameters.append(made(row.pointer, name, kind, when=[when] if when else (), **fields))
    for child, values in _merged(conditional.items() if conditional is not None else []):
        with gathering(found):
            _parameter(child, {"name": name, "in": values}, parameters, found)


def _value_spec(kind: str, spec: Object, scale: Item | None) -> tuple[str, dict[str, Any]]:
    sampling = SCALES[scale.one_of(SCALES)] if scale is not None else None
    default = spec.get("defaultValue")
    if kind in ("doubleValueSpec", "integerValueSpec"):
        is_whole = kind == "integerValueSpec"
        low, high = spec.need("minValue"), spec.need("maxValue")
        spec.done()
        numbers = [
            None if item is None else item.whole() if is_whole else item.number()
            for item in (low, high, default)
        ]
        fields = dict(zip(("min", "max", "default"), numbers, strict=True), sampling=sampling)
        return ("int" if is_whole else "float"), fields
    if scale is not None and sampling is not None:
        raise scale.refuse("a list of values has no scale here; give a range with a step under log instead")
    values = listed(spec.need("values"))
    spec.done()
    return "choice", {"values": values, "default": default.scalar() if default is not None else None}


def _merged(rows: list[Item]) -> list[tuple[Item, list[Any]]]:
    """Return conditional parameters with their parent's values; the same one under several is one."""
    merged: list[tuple[Item, list[Any]]] = []
    for row in rows:
        entry = _object(row)
        child = entry.need("parameterSpec")
        named = [name for name in PARENTS if entry.has(name)]
        if len(named) != 1:
            raise entry.refuse(f"exactly one of {', '.join(PARENTS)} says when it holds")
        condition = _object(entry.need(named[0]))
        values: list[Any] = _parent_values(condition.need("values"), named[0])
        condition.done()
        entry.done()
        same = next((known for other, known in merged if other.value == child.value), None)
        if same is None:
            merged.append((child, values))
        else:
            same += [value for value in values if value not in same]
    return merged


def _parent_values(item: Item, kind: str) -> list[Any]:
    return [entry.whole() for entry in item.items()] if kind == "parentIntValues" else listed(item)


def _object(item: Item) -> Object:
    """Return an object with its keys in camel case."""
    item.object()
    value: dict[str, Any] = item.value
    renamed = {_camel(key): inner for key, inner in value.items()}
    if len(renamed) < len(value):
        twice = next(key for key in value if _camel(key) != key and _camel(key) in value)
        raise Item(None, f"{item.pointer}/{escaped(twice)}").refuse(f"{_camel(twice)!r} stands there as well")
    snake = {_camel(key): key for key in value}
    return _Renamed(renamed, item.pointer, snake)


class _Renamed(Object):
    """An object asked for by camel case names, whose pointers name what was sent."""

    def __init__(self, value: dict[str, Any], pointer: str, sent: dict[str, str]) -> None:
        super().__init__(value, pointer)
        self._sent = sent

    def place(self, name: str) -> str:
        return super().place(self._sent[name])


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)
