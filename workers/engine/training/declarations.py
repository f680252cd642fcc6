"""Reports hyperparameters that a trial's code declares and that the space of its search lacks.

In KerasTuner a hyperparameter exists once code asks for it, so a search's space grows while trials run.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from jobs.messages.events import DECLARED_AN_EVENT
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.formats import keras_tuner as keras_tuner_format
from jobs.spec.formats.reading import FormatError, Item
from jobs.spec.sections.code_model import FIT
from jobs.spec.space.hyperparameters import Parameter, Value, describe_values
from jobs.spec.space.narrowing import is_within
from jobs.spec.space.search_space import Space
from workers.engine.models.code_models.code_rows import UnusableSpace, merged_rows, why_unusable
from workers.engine.report import Report

Entry = dict[str, Any]
"""A hyperparameter in KerasTuner's format."""

MAX_REFUSED = 20
"""After so many hyperparameters that cannot be searched, the rest is not tried: each takes milliseconds."""

_SPACE: TypeAdapter[Space] = TypeAdapter(Space)


def report_declared(report: Report, spec: ExperimentSpec, hyperparameters: Any) -> None:
    """Report the hyperparameters that a trial's code has asked for and that the search space lacks.

    Args:
        report: the trial's report.
        spec: the trial's spec. Without a search, nothing can be added.
        hyperparameters: of KerasTuner, after the code has used them.
    """
    if spec.search is None or not spec.search.space:
        return
    space = spec.search.space
    known = {row.name: row for row in space}
    entries: dict[str, list[Entry]] = {}
    for entry in hyperparameters.get_config()["space"]:
        entries.setdefault(entry["config"]["name"], []).append(entry)
    active = _active_values(hyperparameters)
    for name in known.keys() & active.keys() & entries.keys():
        _warn_of_other_values(report, known[name], entries[name])
    new = {name: declared for name, declared in entries.items() if name not in known}
    if not new:
        return
    rows, refused = _converted(space, new)
    # One that is not active has no value in this trial, and its condition may be excluded on purpose.
    refused = {name: why for name, why in refused.items() if name in active}
    if rows or refused:
        report.declared(rows, {row.name: active[row.name] for row in rows if row.name in active}, refused)


def _active_values(hyperparameters: Any) -> dict[str, Value]:
    """Return the values that the code got, by name."""
    return {
        declared.name: hyperparameters.values[declared.name]
        for declared in hyperparameters.space
        if hyperparameters.is_active(declared) and declared.name in hyperparameters.values
    }


def _converted(space: Space, new: Mapping[str, Sequence[Entry]]) -> tuple[Space, dict[str, str]]:
    """Return new hyperparameters as rows of a space, and why others cannot be searched, by name."""
    # Conditions refer to entries before them.
    entries: list[Entry] = list(keras_tuner_format.write(space)["space"])
    rows: list[Parameter] = []
    refused: dict[str, str] = {}
    for name, declared in new.items():
        if len(rows) + len(refused) == DECLARED_AN_EVENT or len(refused) == MAX_REFUSED:
            break
        if name.startswith(FIT):
            refused[name] = f"names that begin with {FIT} are fields of fit: rename it"
            continue
        try:
            merged = merged_rows(list(declared))
            rows.append(_read([*entries, *merged])[-1])
            entries += merged
        except UnusableSpace as error:
            refused[name] = str(error)
        except FormatError as error:
            refused[name] = why_unusable(error, [*entries, *declared])
    return tuple(rows), refused


def _read(entries: Sequence[Entry]) -> Space:
    """Return a space in KerasTuner's format as rows.

    Raises:
        FormatError: it cannot be searched.
    """
    return _SPACE.validate_python(keras_tuner_format.read(Item({"space": [*entries]}, "")).search["space"])


def _warn_of_other_values(report: Report, row: Parameter, declared: Sequence[Entry]) -> None:
    """Warn if the code declares a hyperparameter without values that the search tries."""
    for other in _alone(declared):
        if is_within(other, row):
            continue
        report.log(f"the code declares {row.name!r} with {describe_values(other)}", level="warning")
        report.warning(
            "declared_with_other_values",
            f"In some trials the code declares {row.name!r} with other values than the search has, "
            f"{describe_values(row)}; the log has them. As in KerasTuner, the first declaration decides, so "
            "these trials get values that the later one excludes. Give each range a name of its own.",
        )


def _alone(declared: Sequence[Entry]) -> Iterator[Parameter]:
    """Yield declarations as rows without conditions. One that cannot be searched was never searched."""
    for entry in declared:
        try:
            yield _read([{**entry, "config": {**entry["config"], "conditions": []}}])[0]
        except FormatError:
            continue
