"""Compares two versions of an experiment that were edited at the same time, and merges them by field."""

import json
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.problems import escaped
from jobs.models import Experiment
from webapp.forms.experiment.sections import SECTIONS

Json = dict[str, Any]
Side = Literal["mine", "theirs"]
Path = tuple[str, ...]
MISSING: Any = object()
"""The value of a field that one version does not have."""
KINDS = ("kind", "template", "dataset")
"""Fields that decide which other fields an object has. If they differ, the object is one choice."""


@dataclass(frozen=True)
class Choice:
    """A field that differs.

    Attributes:
        path: its place in the document. Rows of a search space are identified by name.
        mine: the value in the version that was refused.
        theirs: the value in the saved version.
        changed_by: who changed it since the form was opened; "both" also if this is not known.
        side: the value that is selected at first.
    """

    path: Path
    mine: Any
    theirs: Any
    changed_by: Literal["you", "them", "both"]
    side: Side

    @property
    def id(self) -> str:
        """Return the JSON pointer, which names the input."""
        return "".join(f"/{escaped(part)}" for part in self.path)

    @property
    def label(self) -> str:
        """Return the label of the field in the form, else its last name as words."""
        own = self.path[1:] if self.path[0] == "spec" else self.path
        labels = {
            field.pointer: field.label for s in SECTIONS for group in s.groups for field in group.fields
        }
        found = labels.get("".join(f"/{part}" for part in own))
        return found or (own[-1].replace("_", " ").capitalize() if own else "Spec")

    @property
    def place(self) -> str:
        """Return the dotted path of a field of the spec; empty for name, tags and notes."""
        return ".".join(self.path[1:])

    @property
    def shown(self) -> list[tuple[Side, str]]:
        """Return both values as text."""
        return [("mine", _text(self.mine)), ("theirs", _text(self.theirs))]


def document(*, name: str, tags: str, notes: str, spec: Any) -> Json:
    """Return the fields of the form as one object to compare."""
    listed = ", ".join(tag.strip() for tag in tags.split(",") if tag.strip())
    return {"name": name.strip(), "tags": listed, "notes": notes.replace("\r\n", "\n"), "spec": spec}


def saved(experiment: Experiment) -> Json:
    """Return the saved version: the draft if there is one, else the newest revision."""
    newest = experiment.revisions.order_by("-number").first()
    spec = experiment.draft if experiment.draft is not None else newest.spec_json if newest else {}
    tags = ", ".join(experiment.tags)
    return document(name=experiment.name, tags=tags, notes=experiment.notes, spec=spec)


def with_defaults(found: Json) -> Json:
    """Return a document whose spec has all its defaults, as a revision has them, if it is valid."""
    try:
        return {**found, "spec": ExperimentSpec.model_validate(found.get("spec")).to_json()}
    except ValidationError:
        return found


def choices(mine: Json, theirs: Json, base: Json | None) -> list[Choice]:
    """List the fields that differ.

    Args:
        mine: the version that was refused.
        theirs: the saved version.
        base: the version that the form was opened with; None if it is not known.
    """
    return [_choice(path, ours, other, base) for path, ours, other in _differences(mine, theirs, ())]


def _choice(path: Path, mine: Any, theirs: Any, base: Json | None) -> Choice:
    before = _get(base, path) if base is not None else MISSING
    if base is not None and before == theirs:
        return Choice(path, mine, theirs, "you", "mine")
    if base is not None and before == mine:
        return Choice(path, mine, theirs, "them", "theirs")
    return Choice(path, mine, theirs, "both", "mine")


def merged(mine: Any, theirs: Any, taken: Set[str], path: Path = ()) -> Any:
    """Return my version with their values at the ids of choices in `taken`."""
    if mine == theirs:
        return mine
    parts = _parts(mine, theirs)
    if parts is None:
        return theirs if Choice(path, mine, theirs, "both", "mine").id in taken else mine
    both = {key: merged(*pair, taken, (*path, key)) for key, pair in parts.items()}
    kept = {key: value for key, value in both.items() if value is not MISSING}
    return kept if isinstance(mine, dict) else list(kept.values())


def _differences(mine: Any, theirs: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if mine == theirs:
        return
    parts = _parts(mine, theirs)
    if parts is None:
        yield path, mine, theirs
        return
    for key, (ours, other) in parts.items():
        yield from _differences(ours, other, (*path, key))


def _parts(mine: Any, theirs: Any) -> dict[str, tuple[Any, Any]] | None:
    """Return the parts of two values that are compared one by one; None if the values are one choice."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        ours, other = mine, theirs
    else:
        ours, other = _rows(mine), _rows(theirs)
        if not ours or not other or [n for n in ours if n in other] != [n for n in other if n in ours]:
            return None
    if any(ours.get(kind) != other.get(kind) for kind in KINDS if isinstance(mine, dict)):
        return None
    return {key: (ours.get(key, MISSING), other.get(key, MISSING)) for key in _order(list(ours), list(other))}


def _rows(value: Any) -> Json:
    """Return the rows of a list by their names; empty if it is no list of rows with different names."""
    rows = value if isinstance(value, list) else []
    named = {row["name"]: row for row in rows if isinstance(row, dict) and isinstance(row.get("name"), str)}
    return named if len(named) == len(rows) else {}


def _order(mine: list[str], theirs: list[str]) -> list[str]:
    """Return all keys: mine in order, each of theirs after the one that precedes it there."""
    found = list(mine)
    for i, key in enumerate(theirs):
        if key not in found:
            found.insert(found.index(theirs[i - 1]) + 1 if i else 0, key)
    return found


def _get(value: Any, path: Path) -> Any:
    for key in path:
        value = (value if isinstance(value, dict) else _rows(value)).get(key, MISSING)
    return value


def _text(value: Any) -> str:
    if value is MISSING:
        return "not set"
    if isinstance(value, str):
        return value or "empty"
    flat = json.dumps(value, ensure_ascii=False)
    return flat if len(flat) <= 60 else json.dumps(value, ensure_ascii=False, indent=2)
