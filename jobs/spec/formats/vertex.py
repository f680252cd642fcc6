"""Reads Google Vertex AI's `StudySpec`, alone or inside a Study or a HyperparameterTuningJob.

The fields come from google/cloud/aiplatform/v1/study.proto. As protobuf's JSON mapping allows, names are in
camel case or snake case, and 64-bit numbers may be strings.
"""

import re
from collections.abc import Mapping
from typing import Any

from jobs.spec.formats.reading import FormatError, Item, Object, collect_errors, format_error
from jobs.spec.formats.result import (
    Imported,
    ParsedParameter,
    Part,
    build_import,
    choice_values,
    parse_parameter,
)
from jobs.spec.problems import Problem, escaped

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
METADATA = (
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
    """Return whether an object has this format's keys."""
    value = {_camel(key): inner for key, inner in value.items()}
    rows = value.get("parameters")
    first = rows[0] if isinstance(rows, list) and rows else None
    has_ids = isinstance(first, dict) and ("parameterId" in first or "parameter_id" in first)
    return "studySpec" in value or has_ids or (isinstance(rows, list) and "metrics" in value)


def read(root: Item) -> Imported:
    """Read a study."""
    outer = _object(root)
    notes: list[str] = []
    parts: dict[str, Part] = {}
    study = outer
    if outer.has("studySpec"):
        study = _object(outer.require("studySpec"))
        for theirs, ours in (("maxTrialCount", "max_trials"), ("parallelTrialCount", "parallel_trials")):
            if (item := outer.get(theirs)) is not None:
                parts[ours] = Part(item.integer(), item.pointer)
        notes += outer.ignore(*METADATA, *LAUNCH, reason="ignored; not part of the search")
        outer.reject_unknown()
    problems: list[Problem] = []
    with collect_errors(problems):
        parts |= _search(study, notes)
    parameters: list[ParsedParameter] = []
    rows = study.get("parameters")
    for row in rows.items() if rows is not None else []:
        with collect_errors(problems):
            _parameter(row, None, parameters, problems)
    with collect_errors(problems):
        study.reject_unknown()
    if problems:
        raise FormatError(problems)
    return build_import("vertex", parameters, notes, **parts)


def _search(study: Object, notes: list[str]) -> dict[str, Part]:
    parts: dict[str, Part] = {}
    metrics, algorithm = study.get("metrics"), study.get("algorithm")
    noise, selection = study.get("observationNoise"), study.get("measurementSelectionType")
    if metrics is not None:
        parts["objective"] = _objective(metrics)
    if algorithm is not None and algorithm.one_of(["ALGORITHM_UNSPECIFIED", *ALGORITHMS]) in ALGORITHMS:
        parts["algorithm"] = Part(ALGORITHMS[algorithm.string()], algorithm.pointer)
    else:
        notes.append("algorithm: Vertex AI's default is not available; choose one")
    if noise is not None and noise.one_of(["OBSERVATION_NOISE_UNSPECIFIED", "LOW", "HIGH"]) == "HIGH":
        raise noise.error(
            "HIGH is not supported: no configuration is tried twice; use executions_per_trial instead"
        )
    if selection is not None and selection.value not in (
        "BEST_MEASUREMENT",
        "MEASUREMENT_SELECTION_TYPE_UNSPECIFIED",
    ):
        raise selection.error(
            f"{selection.value!r} is not supported: the score is the best epoch, BEST_MEASUREMENT"
        )
    return parts


def _objective(metrics: Item) -> Part:
    rows = metrics.items()
    if len(rows) != 1:
        raise metrics.error(f"{len(rows)} metrics given; exactly one objective can be imported")
    row = _object(rows[0])
    goal = row.get("goal")
    direction = DIRECTIONS[goal.one_of(DIRECTIONS)] if goal is not None else "max"
    metric = row.require("metricId")
    row.reject_unknown()
    return Part({"metric": metric.string(), "direction": direction}, metric.pointer)


def _parameter(row: Item, when: Any, parameters: list[ParsedParameter], problems: list[Problem]) -> None:
    """Read a parameter, followed by its conditional parameters."""
    entry = _object(row)
    name = entry.require("parameterId").string()
    kinds = [kind for kind in KINDS if entry.has(kind)]
    if len(kinds) != 1:
        raise entry.error(f"give exactly one of {', '.join(KINDS)}")
    scale = entry.get("scaleType")
    kind, fields = _value_spec(kinds[0], _object(entry.require(kinds[0])), scale)
    conditional = entry.get("conditionalParameterSpecs")
    entry.reject_unknown()
    parameters.append(parse_parameter(row.pointer, name, kind, when=[when] if when else (), **fields))
    # A study may repeat a child for each value of its parent, but here a name is used only once.
    for child, values in _merged(conditional.items() if conditional is not None else []):
        with collect_errors(problems):
            _parameter(child, {"name": name, "in": values}, parameters, problems)


def _value_spec(kind: str, spec: Object, scale: Item | None) -> tuple[str, dict[str, Any]]:
    sampling = SCALES[scale.one_of(SCALES)] if scale is not None else None
    default = spec.get("defaultValue")
    if kind in ("doubleValueSpec", "integerValueSpec"):
        is_whole = kind == "integerValueSpec"
        low, high = spec.require("minValue"), spec.require("maxValue")
        spec.reject_unknown()
        numbers = [
            None if item is None else item.integer() if is_whole else item.number()
            for item in (low, high, default)
        ]
        fields = dict(zip(("min", "max", "default"), numbers, strict=True), sampling=sampling)
        return ("int" if is_whole else "float"), fields
    if scale is not None and sampling is not None:
        raise scale.error("not supported for a list of values; give a range with a logarithmic scale instead")
    values = choice_values(spec.require("values"))
    spec.reject_unknown()
    return "choice", {"values": values, "default": default.scalar() if default is not None else None}


def _merged(rows: list[Item]) -> list[tuple[Item, list[Any]]]:
    """Return conditional parameters with the parent values that activate each; equal ones are merged."""
    merged: list[tuple[Item, list[Any]]] = []
    for row in rows:
        entry = _object(row)
        child = entry.require("parameterSpec")
        named = [name for name in PARENTS if entry.has(name)]
        if len(named) != 1:
            raise entry.error(f"give exactly one of {', '.join(PARENTS)} as the condition")
        condition = _object(entry.require(named[0]))
        listed = condition.require("values")
        is_int = named[0] == "parentIntValues"
        values: list[Any] = [item.integer() for item in listed.items()] if is_int else choice_values(listed)
        condition.reject_unknown()
        entry.reject_unknown()
        same = next((parent_values for other, parent_values in merged if other.value == child.value), None)
        if same is None:
            merged.append((child, values))
        else:
            same += [value for value in values if value not in same]
    return merged


def _object(item: Item) -> Object:
    """Return an object with its keys in camel case."""
    # Only for its error if the value is not an object.
    item.object()
    value: dict[str, Any] = item.value
    sent: dict[str, str] = {}
    for key in value:
        # Both spellings of a name in one object: only one could be read.
        if (other := sent.setdefault(_camel(key), key)) != key:
            raise format_error(f"{item.pointer}/{escaped(key)}", f"{other!r} is given, too")
    return _Renamed({name: value[key] for name, key in sent.items()}, item.pointer, sent)


class _Renamed(Object):
    """An object with keys in camel case, whose pointers contain the text's keys."""

    def __init__(self, value: dict[str, Any], pointer: str, sent: dict[str, str]) -> None:
        super().__init__(value, pointer)
        self._sent = sent

    def place(self, name: str) -> str:
        return super().place(self._sent[name])


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)
