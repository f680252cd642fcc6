"""Defines the fields, groups and sections that describe the experiment form."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from webapp.forms.experiments.experiment.schema import VARIANTS, Leaf, spec_leaves

MAX_SHOWN_BOUND = 1000


class Option(NamedTuple):
    """One entry in a choice: its value as JSON text and its label."""

    value: str
    label: str


@dataclass(frozen=True)
class Field:
    """One input at a spec pointer. `leaf` has its type, bounds and default.

    Attributes:
        pointer: JSON pointer to its value; in a row relative to the row.
        label: the text beside the input.
        help: a sentence under the input.
        kind: the input type; the spec's type if empty. Further types: `dataset`, `version` and `column`
            list those in the selected data set, `measure` its task's metrics, `search` earlier
            searches; `devices` lists the kinds that workers report; `value` and `values` accept numbers,
            texts or yes/no; `axis` is a mesh axis.
        options: a select's options; the spec's options if empty.
        only: the kinds that have this argument; empty for all.
        of: pointer to the field that selects the kind; by default the template.
        spec: the pointer in the spec, where it differs from `pointer`.
        wide: whether it fills a whole line.
        listed: the list of known values that a text field offers: `pools`, `gpus`, `labels` or `models`.
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
    listed: str = ""

    @property
    def leaf(self) -> Leaf:
        return spec_leaves()[self.spec or self.pointer]

    @property
    def input(self) -> str:
        """Return the input type."""
        return self.kind or self.leaf.kind

    @property
    def is_filled_by_script(self) -> bool:
        """Return whether a script fills in its options, because they depend on other fields."""
        return self.input in ("dataset", "version", "column", "measure", "search", "loss")

    @property
    def is_list(self) -> bool:
        """Return whether a text has several values, separated by commas."""
        return self.input in ("labels", "list")

    @property
    def id(self) -> str:
        """Return the input's id, to which problem links lead."""
        return f"at/spec{self.pointer}"

    @property
    def choices(self) -> tuple[Option, ...]:
        """Return a select's options. Those for an optional field begin with an empty one."""
        choices = self.options or tuple(
            Option(json.dumps(name), _option_label(name)) for name in self.leaf.options
        )
        return choices if self.leaf.required or self.leaf.default is not None else (Option("", "—"), *choices)

    @property
    def placeholder(self) -> str:
        """Return the default, which applies while the input is empty."""
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
        """Return the allowed range, if it is small enough to be helpful."""
        low, high = self.leaf.minimum, self.leaf.maximum
        if low is None or high is None or high > MAX_SHOWN_BOUND or self.spec:
            return ""
        return f"{low:g} to {high:g}"


def _option_label(name: Any) -> str:
    """Return a lowercase identifier as words, and any other name unchanged."""
    return str(name).replace("_", " ") if str(name).islower() else str(name)


def argument(of: str, name: str, label: str, help_text: str = "", **more: Any) -> Field:
    """Return the field for an argument that some kinds in the choice at `of` take."""
    variant = VARIANTS[of]
    only = tuple(kind for kind, takes in variant.kinds.items() if name in takes.model_fields)
    return Field(f"{variant.arguments}/{name}", label, help_text, only=only, of=of, **more)


def arguments(of: str) -> tuple[Field, ...]:
    """Return a field for every argument that a kind in the choice at `of` takes, labelled by its class."""
    fields: dict[str, FieldInfo] = {}
    for takes in VARIANTS[of].kinds.values():
        fields = {**takes.model_fields, **fields}
    return tuple(
        argument(of, name, about.title or name.replace("_", " ").capitalize(), about.description or "")
        for name, about in fields.items()
    )


@dataclass(frozen=True)
class Group:
    """A field group. With `toggle`, the object at that pointer is optional.

    Attributes:
        title: its heading.
        fields: in order.
        help: a sentence under the heading.
        toggle: pointer to the object that the group's switch adds or removes.
        initial: the object that the switch adds.
        part: a partial template's name, shown after the fields.
        covers: pointers that `part` edits, for the test that matches the form to the spec.
        within: pointer to the object without which the group is hidden.
        first: how many fields are on the first line; the others are behind *More*. 0: all are shown.
    """

    title: str
    fields: tuple[Field, ...] = ()
    help: str = ""
    toggle: str = ""
    initial: dict[str, Any] | None = None
    part: str = ""
    covers: tuple[str, ...] = ()
    within: str = ""
    first: int = 0

    @property
    def first_fields(self) -> tuple[Field, ...]:
        """Return the fields that are always shown."""
        return self.fields[: self.first] if self.first else self.fields

    @property
    def more_fields(self) -> tuple[Field, ...]:
        """Return the fields behind *More*."""
        return self.fields[self.first :] if self.first else ()

    @property
    def initial_json(self) -> str:
        """Return the object that the switch adds, as JSON text."""
        return json.dumps(self.initial or {})


@dataclass(frozen=True)
class Section:
    """One step of the form. Errors at or below `pointers` belong to it."""

    id: str
    title: str
    icon: str
    intro: str
    groups: tuple[Group, ...]
    pointers: tuple[str, ...]


class Cell(NamedTuple):
    """The input for the values that a hyperparameter takes; `pointer` is relative to its row.

    Attributes:
        pointer: the row's field that it writes.
        input: the input type.
        placeholder: an example.
        edits: the fields in the spec that it edits.
    """

    pointer: str
    input: str
    placeholder: str
    edits: tuple[str, ...]


@dataclass(frozen=True)
class RowKind:
    """A kind of hyperparameter.

    Attributes:
        tag: its name in the spec.
        label: its name in the form.
        cell: the input for its values, in the table; None where the kind alone decides them.
        fields: those behind the button for more; their pointers are relative to the row.
    """

    tag: str
    label: str
    cell: Cell | None
    fields: tuple[Field, ...] = ()

    @property
    def covers(self) -> tuple[str, ...]:
        """Return the names of the fields in the spec that the row edits, besides those of every kind."""
        return (*(self.cell.edits if self.cell else ()), *(field.pointer for field in self.fields))
