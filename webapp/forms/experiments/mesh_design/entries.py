"""Reads a mesh from the designer's fields, and shows one in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from django.http import QueryDict
from pydantic import ValidationError

from jobs.errors import BadInput
from jobs.spec.checks import patterns
from jobs.spec.checks import sizes as spec_sizes
from jobs.spec.problems import Problem, problems
from jobs.spec.sections.mesh import MeshSpec
from webapp.http_errors import Malformed
from webapp.json_text import read_json
from webapp.whole_numbers import number_or_text, read_whole

KINDS = ("cpu", "gpu", "tpu")
WHOLE = "–"
"""The entry for a dimension that no axis divides."""
_NO_AXIS = frozenset({"", "-", WHOLE, "—", "null", "none", "None", "*"})
FIELDS = frozenset({"devices", "shape", "axis_names", "batch_axis", "simulate", "layout"})
"""The fields of a mesh that a design sets; an experiment keeps the others."""


class AxisEntry(NamedTuple):
    """An axis as a person has entered it."""

    name: str
    size: str


class RuleEntry(NamedTuple):
    """A layout rule as a person has entered it: its pattern, and its axes with commas between them."""

    match: str
    axes: str


@dataclass(frozen=True)
class MeshEntries:
    """The fields of the designer, as they were entered.

    Attributes:
        devices: the kind of the devices, or their names with commas between them.
        simulated: whether the devices are simulated ones.
        axes: the axes, the outer one first.
        batch: the position of the axis that divides the batch; None: none does.
        rules: the layout rules; the first one that matches a variable takes it.
    """

    devices: str
    simulated: bool
    axes: tuple[AxisEntry, ...]
    batch: int | None
    rules: tuple[RuleEntry, ...]

    @classmethod
    def from_mesh(cls, mesh: MeshSpec) -> Self:
        """Return the entries that show a mesh."""
        return cls(
            mesh.devices if isinstance(mesh.devices, str) else ", ".join(mesh.devices),
            mesh.simulate is not None,
            tuple(AxisEntry(n, str(size)) for n, size in zip(mesh.axis_names, mesh.shape, strict=True)),
            mesh.axis_names.index(mesh.batch_axis) if mesh.batch_axis is not None else None,
            tuple(
                RuleEntry(rule.match, ", ".join(axis or WHOLE for axis in rule.axes)) for rule in mesh.layout
            ),
        )

    @classmethod
    def from_post(cls, post: QueryDict) -> Self:
        """Return the entries of a submitted form."""
        devices = post.get("devices", "cpu")
        return cls(
            devices,
            # The switch is for CPUs alone; a person who chooses GPUs need not switch it off.
            "simulated" in post and devices == "cpu",
            tuple(
                AxisEntry(name.strip(), size.strip())
                for name, size in zip(post.getlist("axis_name"), post.getlist("axis_size"), strict=False)
            ),
            read_whole(post.get("batch_axis", ""), digits=2),
            tuple(
                RuleEntry(match.strip(), axes)
                for match, axes in zip(post.getlist("match"), post.getlist("axes"), strict=False)
            )[: spec_sizes.MAX_RULES + 1],
        )

    def mesh_json(self) -> dict[str, Any]:
        """Return the mesh as JSON; it may be invalid."""
        names = [axis.name for axis in self.axes]
        shape = [number_or_text(axis.size) for axis in self.axes]
        named = [name.strip() for name in self.devices.split(",") if name.strip()]
        mesh: dict[str, Any] = {
            "devices": self.devices if self.devices in KINDS else named,
            "shape": shape,
            "axis_names": names,
            "batch_axis": names[self.batch] if self.batch is not None and self.batch < len(names) else None,
            "layout": [{"match": rule.match, "axes": axes_of(rule.axes)} for rule in self.rules],
        }
        if self.simulated:
            # As many as the axes need; only CPU devices can be simulated.
            mesh["simulate"] = _product(shape)
        return mesh

    def moved(self, rule: int, by: int) -> Self:
        """Return the entries with one rule moved up or down."""
        to = rule + by
        if not (0 <= rule < len(self.rules) and 0 <= to < len(self.rules)):
            return self
        rules = list(self.rules)
        rules.insert(to, rules.pop(rule))
        return replace(self, rules=tuple(rules))


def _product(shape: Sequence[int | str]) -> int | None:
    total = 1
    for size in shape:
        if not isinstance(size, int):
            return None
        total *= size
    return total


def axes_of(text: str) -> list[str | None]:
    """Return the axes in an entry such as `–, model`."""
    return [None if part.strip() in _NO_AXIS else part.strip() for part in text.split(",")]


def parse_mesh(value: Any) -> tuple[MeshSpec | None, list[Problem]]:
    """Return the mesh in parsed JSON, and its problems, with pointers such as `/mesh/shape`."""
    layout = value.get("layout") if isinstance(value, dict) else None
    if isinstance(layout, list) and len(layout) > spec_sizes.MAX_RULES:
        return None, [Problem("/mesh/layout", f"at most {spec_sizes.MAX_RULES:,} rules are accepted")]
    try:
        mesh = MeshSpec.model_validate(value)
    except ValidationError as error:
        return None, problems(error, value, "/mesh")
    if too_large := list(spec_sizes.pattern_problems("/mesh/layout", [rule.match for rule in mesh.layout])):
        return None, too_large
    refused = [
        Problem(f"/mesh/layout/{i}/match", reason)
        for i, rule in enumerate(mesh.layout)
        if (reason := patterns.refusal(rule.match)) is not None
    ]
    if mesh.simulate is not None and mesh.kind != "cpu":
        refused.append(Problem("/mesh/simulate", "only CPU devices can be simulated"))
    return mesh, refused


def parse_mesh_text(text: str, field: str = "/mesh") -> MeshSpec:
    """Return the mesh in an address.

    Raises:
        BadInput: it is no mesh; names the fields.
    """
    try:
        value = read_json(text.encode())
    except Malformed as error:
        message = f'give a mesh as JSON, such as {{"shape": [2, 4], …}}: {error.message}'
        raise BadInput(message, [Problem(field, message)]) from error
    mesh, wrong = parse_mesh(value)
    if mesh is None:
        message = f"{wrong[0].pointer}: {wrong[0].message}" if wrong else "give a mesh as JSON"
        raise BadInput(message, wrong or [Problem(field, message)])
    return mesh
