"""Builds the Spec tab on a job's page: the settings in words, and the same as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.models import Job
from jobs.spec.space.hyperparameters import describe_values
from webapp.template_context import Context

SECTIONS = {
    "data": "Data",
    "model": "Model",
    "fit": "Training",
    "search": "Search",
    "mesh": "Mesh",
    "precision": "Precision",
    "after": "After the search",
    "resources": "Resources",
}
"""The sections of a spec in the order of the form, with their titles."""
SPACE = "Search space"

type Lines = list[tuple[str, str]]


@dataclass(frozen=True)
class SpecTab(Context):
    """The settings that a job runs with: sections of names and values, and the spec itself."""

    sections: list[tuple[str, Lines]]
    spec: Any


def spec_contexts(_request: object, row: Job) -> tuple[Context, ...]:
    """Return the variables for the Spec tab."""
    if row.revision is None:
        return (SpecTab([], None),)
    body = row.revision.spec_json
    return (SpecTab([*_sections(body), *_space_of(row)], body),)


def _sections(body: Mapping[str, Any]) -> Iterator[tuple[str, Lines]]:
    for name, title in SECTIONS.items():
        if lines := list(_lines(body.get(name), "")):
            yield title, lines


def _space_of(row: Job) -> list[tuple[str, Lines]]:
    search = row.revision.spec.search if row.revision is not None else None
    if search is None or not search.space:
        return []
    return [(SPACE, [(parameter.name, describe_values(parameter)) for parameter in search.space])]


def _lines(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield each setting that has a value, named by its path, such as `early stopping, patience`."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if not (path == "" and name == "space"):
                yield from _lines(inner, f"{path}, {_words(name)}" if path else _words(name))
    elif isinstance(value, list) and any(isinstance(entry, Mapping | list) for entry in value):
        for number, entry in enumerate(value, 1):
            yield from _lines(entry, f"{path} {number}")
    elif value is not None and value not in ("", []):
        yield path, _text(value)


def _words(name: str) -> str:
    return name.strip("_").replace("_", " ")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(entry) for entry in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
