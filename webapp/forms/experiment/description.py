"""What a field, a group of fields and a step of the form are."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from webapp.forms.experiment.schema import VARIANTS, Leaf, leaves

WORTH_SAYING = 1000


class Option(NamedTuple):
    """One entry of a choice: its value as JSON text, and what people read."""

    value: str
    label: str


@dataclass(frozen=True)
class Field:
    """One input at a pointer of the spec. What the spec knows of it comes from `leaf`.

    Attributes:
        pointer: where its value goes; in a row relative to the row.
        label: what people read.
        help: a sentence under the input.
        kind: how it is typed in; the spec's own kind if empty. Beyond those: `dataset`, `version` and
            `column` offer what the chosen data set has, `measure` what is measured for its task, `search`
            an earlier search, `value`
            and `values` take numbers, texts or yes/no, `axis` names an axis of the mesh.
        options: entries of a select; the spec's own if empty.
        only: kinds whose argument it is; empty for all.
        of: pointer of the choice between kinds: by default the template.
        spec: the pointer in the spec, where it differs from `pointer`.
        wide: takes a whole line.
    """

    pointer: str
    label: str
    help: str = ""
    kind: str = ""
    options: tuple[Option, ...] = ()
    only: tuple[str, ...] = ()
    of: str = "/model/template"
    spec: str = ""
    wide: bool = False

    @property
    def leaf(self) -> Leaf:
        """Return what the spec says of it."""
        return leaves()[self.spec or self.pointer]

    @property
    def input(self) -> str:
        """Return how it is typed in."""
        return self.kind or self.leaf.kind

    @property
    def is_filled_by_script(self) -> bool:
        """Return whether its entries depend on other fields, so that a script fills them in."""
        return self.input in ("dataset", "version", "column", "measure", "search", "loss")

    @property
    def id(self) -> str:
        """Return the id of its input: where an error's pointer leads."""
        return f"at/spec{self.pointer}"

    @property
    def choices(self) -> tuple[Option, ...]:
        """Return the entries of a select; one that may be left out begins with an empty one."""
        own = self.options or tuple(Option(json.dumps(name), _words(name)) for name in self.leaf.options)
        return own if self.leaf.required or self.leaf.default is not None else (Option("", "—"), *own)

    @property
    def placeholder(self) -> str:
        """Return what holds while the input is empty."""
        default = self.leaf.default
        if default is None or isinstance(default, bool | tuple | dict):
            return ""
        return f"{default:g}" if isinstance(default, int | float) else str(default)

    @property
    def default_json(self) -> str:
        """Return the spec's default as JSON text."""
        default = self.leaf.default
        return "" if default is None else json.dumps(list(default) if isinstance(default, tuple) else default)

    @property
    def bounds(self) -> str:
        """Return the allowed range in words, where it is narrow enough to be worth saying."""
        low, high = self.leaf.minimum, self.leaf.maximum
        if low is None or high is None or high > WORTH_SAYING or self.spec:
            return ""
        return f"{low:g} to {high:g}"


def _words(name: Any) -> str:
    return str(name).replace("_", " ") if str(name).islower() else str(name)


def argument(of: str, name: str, label: str, says: str = "", **more: Any) -> Field:
    """Return the field of an argument that some kinds of the choice at `of` take."""
    variant = VARIANTS[of]
    only = tuple(kind for kind, takes in variant.kinds.items() if name in takes.model_fields)
    return Field(f"{variant.arguments}/{name}", label, says, only=only, of=of, **more)


def arguments(of: str) -> tuple[Field, ...]:
    """Return a field for every argument that some kind of the choice at `of` takes, labelled by its class."""
    found: dict[str, FieldInfo] = {}
    for takes in VARIANTS[of].kinds.values():
        found = {**takes.model_fields, **found}
    return tuple(
        argument(of, name, about.title or name.replace("_", " ").capitalize(), about.description or "")
        for name, about in found.items()
    )


@dataclass(frozen=True)
class Group:
    """Fields that belong together; with `toggle` the whole object at that pointer may be left out.

    Attributes:
        title: its heading.
        fields: in order.
        help: a sentence under the heading.
        toggle: pointer of the object that the group's switch makes or removes.
        initial: the object that the switch makes.
        part: name of a partial template that draws more than fields.
        covers: pointers that `part` edits, for the test that matches the form to the spec.
    """

    title: str
    fields: tuple[Field, ...] = ()
    help: str = ""
    toggle: str = ""
    initial: dict[str, Any] | None = None
    part: str = ""
    covers: tuple[str, ...] = ()

    @property
    def initial_json(self) -> str:
        """Return what switching on puts there."""
        return json.dumps(self.initial or {})


@dataclass(frozen=True)
class Section:
    """One step of the form. `pointers` say which errors belong to it."""

    id: str
    title: str
    icon: str
    intro: str
    groups: tuple[Group, ...]
    pointers: tuple[str, ...]


@dataclass(frozen=True)
class RowKind:
    """A kind of row in a list of the spec: its tag, its name and its fields, pointers relative to the row."""

    tag: str
    label: str
    fields: tuple[Field, ...]
