"""Applies the designer's buttons: each names a command, such as `plan:alternating` or `up:2`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobs.spec.plan.mesh.layout_plans import PLANS, resize
from jobs.spec.plan.mesh.placement import Weight
from jobs.spec.sections.mesh import MeshSpec
from webapp.forms.experiments.mesh_design.entries import (
    WHOLE,
    AxisEntry,
    MeshEntries,
    RuleEntry,
    parse_mesh,
)
from webapp.whole_numbers import read_whole

AXIS_NAMES = ("data", "model", "axis3", "axis4")


@dataclass(frozen=True)
class Outcome:
    """The entries after a command.

    Attributes:
        entries: the fields.
        before: the mesh with which the design is compared, if the command sets it.
        plan: the name of the plan that was chosen; empty for other commands.
    """

    entries: MeshEntries
    before: MeshSpec | None = None
    plan: str = ""


def apply_command(
    command: str,
    entries: MeshEntries,
    weights: Sequence[Weight],
    *,
    before: MeshSpec | None,
    variable: str,
) -> Outcome:
    """Return the entries after a command; unchanged if it is unknown, or the mesh is invalid.

    Args:
        command: the value of the pressed button.
        entries: the fields.
        weights: the model's variables, for plans.
        before: the mesh with which the design was compared.
        variable: the path of the chosen variable, for which a new rule is made.
    """
    name, _, argument = command.partition(":")
    at = read_whole(argument, digits=5) or 0
    match name:
        case "up" | "down":
            return Outcome(entries.moved(at, -1 if name == "up" else 1))
        case "remove":
            return Outcome(replace(entries, rules=_without(entries.rules, at)))
        case "add-rule":
            return Outcome(replace(entries, rules=(*entries.rules, _rule_for(variable, weights))))
        case "remove-axis":
            return Outcome(_without_axis(entries, at))
        case "add-axis":
            return Outcome(_with_axis(entries))
        case "back" if before is not None:
            return Outcome(MeshEntries.from_mesh(before))
        case "plan" | "resize":
            return _changed_mesh(name, argument, at, entries, weights)
    return Outcome(entries)


def _changed_mesh(
    name: str, argument: str, devices: int, entries: MeshEntries, weights: Sequence[Weight]
) -> Outcome:
    mesh, _ = parse_mesh(entries.mesh_json())
    if mesh is None:
        return Outcome(entries)
    if name == "plan" and argument in PLANS:
        return Outcome(MeshEntries.from_mesh(PLANS[argument].make(mesh, weights)), mesh, argument)
    other = resize(mesh, devices) if name == "resize" and devices else None
    return Outcome(entries) if other is None else Outcome(MeshEntries.from_mesh(other), mesh)


def _rule_for(variable: str, weights: Sequence[Weight]) -> RuleEntry:
    """Return a rule that takes the chosen variable, and leaves it whole until its axes are entered."""
    weight = next((weight for weight in weights if weight.path == variable), None)
    if weight is None:
        return RuleEntry(".*/kernel", f"{WHOLE}, {WHOLE}")
    return RuleEntry(re.escape(weight.path), ", ".join(WHOLE for _ in weight.shape) or WHOLE)


def _without[T](rows: tuple[T, ...], at: int) -> tuple[T, ...]:
    return (*rows[:at], *rows[at + 1 :])


def _without_axis(entries: MeshEntries, at: int) -> MeshEntries:
    batch = entries.batch
    if batch is not None:
        batch = None if batch == at else batch - 1 if batch > at else batch
    return replace(entries, axes=_without(entries.axes, at), batch=batch)


def _with_axis(entries: MeshEntries) -> MeshEntries:
    used = {axis.name for axis in entries.axes}
    if entries.batch is not None:
        # Whatever the axis is called that divides the batch, another one is for the model.
        used.add(AXIS_NAMES[0])
    name = next((name for name in AXIS_NAMES if name not in used), "")
    return replace(entries, axes=(*entries.axes, AxisEntry(name, "2")))
