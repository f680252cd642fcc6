"""Compares the settings of several experiments."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobs.answers.runs.job_comparison import SettingRowOut
from jobs.queries.runs.job_comparison.subjects import Subject
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.space.hyperparameters import describe_values

VALUES = "/values/"
"""Begins the pointers of the values with which a model was trained."""


def compare_settings(subjects: Sequence[Subject]) -> tuple[list[SettingRowOut], list[SettingRowOut]]:
    """Return the settings that differ between subjects, and those that are equal.

    Subjects without settings, such as uploaded files, count in no row. Defaults are written out, so that a
    field that one experiment sets to its default does not differ from another's.
    """
    flat = [settings_of(subject) for subject in subjects]
    pointers = dict.fromkeys(pointer for settings in flat for pointer in settings or ())
    differing: list[SettingRowOut] = []
    equal: list[SettingRowOut] = []
    for pointer in pointers:
        values = [None if settings is None else settings.get(pointer) for settings in flat]
        compared = [value for value, settings in zip(values, flat, strict=True) if settings is not None]
        is_equal = all(value == compared[0] for value in compared)
        (equal if is_equal else differing).append(SettingRowOut(pointer=pointer, values=values))
    return differing, equal


def settings_of(subject: Subject) -> dict[str, Any] | None:
    """Return a subject's settings by pointer; None if it has no experiment."""
    if subject.revision is None:
        return None
    spec = subject.revision.spec
    body = spec.model_dump(mode="json", by_alias=True, exclude={"version"})
    # An empty list is a setting that is not set.
    flat = {pointer: value for pointer, value in _flatten(body, "") if value not in (None, [], {})}
    flat |= _space_of(spec)
    return flat | {VALUES + _escaped(name): value for name, value in subject.values.items()}


def _flatten(value: Any, pointer: str) -> Iterable[tuple[str, Any]]:
    if pointer == "/search/space":
        return
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _flatten(item, f"{pointer}/{_escaped(str(name))}")
    else:
        yield pointer, value


def _space_of(spec: ExperimentSpec) -> dict[str, str]:
    """Return the hyperparameters of a search in words: one row each, not one for each end of a range."""
    rows = spec.search.space if spec.search is not None else ()
    return {f"/search/space/{_escaped(row.name)}": _in_words(row) for row in rows}


def _in_words(row: Any) -> str:
    conditions = [
        f"if {when.name} is {' or '.join(str(value) for value in when.in_)}" for when in row.conditions()
    ]
    return ", ".join([describe_values(row), *conditions])


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
