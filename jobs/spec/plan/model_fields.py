"""Computes a plan's fields about the model: its variables, their shards, and the memory of each device."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jobs.spec.base import Frozen
from jobs.spec.checks import layouts
from jobs.spec.checks.settings import tried_templates
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.fine_tuning import FineTuningPlan
from jobs.spec.plan.largest import largest, with_values
from jobs.spec.plan.layout_rules import check_layout, device_shape, rules_for, shadowed_rules
from jobs.spec.plan.mesh.suggestions import suggest_rules
from jobs.spec.plan.model_state import ModelState
from jobs.spec.plan.training_memory import DeviceMemory
from jobs.spec.plan.variables import parameters, typed_variables
from jobs.spec.problems import Problem
from jobs.spec.sections.mesh import LayoutRule
from jobs.spec.templates.layers import Variable

NOT_BUILT = (
    "The variables of this model are known after a worker has built it: request an estimate of its mesh."
)


class KnownState(NamedTuple):
    """The variables of a model that a worker has built, and of which of the spec's models they are."""

    state: ModelState
    note: str = ""


class PlannedVariable(Frozen):
    """One variable of the model: its sharding and the part that each device holds."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    rule: int | None
    axes: tuple[str | None, ...]
    device_shape: tuple[int, ...]
    bytes: int


class Memory(Frozen):
    """Bytes on each device for the largest configuration, by purpose."""

    weights: int
    gradients: int
    optimizer: int
    activations: int


def layout_problems(spec: ExperimentSpec, known: KnownState) -> list[Problem]:
    """Return the layout's problems with the variables of a model that a worker has built.

    None are returned for a search, whose trials may have other variables: they are warnings in its plan.
    """
    return [] if spec.search is not None else _layout_findings(spec, known)


def layout_warnings(spec: ExperimentSpec, known: KnownState | None) -> list[Problem]:
    """Return the layout's problems in a search, with the model that it has without the search."""
    return _layout_findings(spec, known) if spec.search is not None and known is not None else []


def shadow_warnings(spec: ExperimentSpec, listed: list[Variable]) -> Iterator[Problem]:
    """Yield a warning for each layout rule that never applies, since others precede it at all variables.

    Args:
        spec: the experiment.
        listed: its model's variables; empty if they are unknown.
    """
    # In a search over templates it may apply in another one.
    if not listed or spec.mesh is None or len(tried_templates(spec)) > 1:
        return
    applied = {rules[0][0] for variable in listed if (rules := rules_for(variable, spec.mesh))}
    for note in shadowed_rules(spec.mesh, listed):
        if int(note.pointer.split("/")[3]) not in applied:
            yield Problem(note.pointer, f"{note.message}.")


def _layout_findings(spec: ExperimentSpec, known: KnownState) -> list[Problem]:
    return [] if spec.mesh is None else check_layout(spec.mesh, known.state.listed(), spec.fit.batch_size)


def fields_of_template(spec: ExperimentSpec, profile: Profile, described: Profile) -> dict[str, Any]:
    """Return a plan's fields about the variables and the largest model's memory, by formulas.

    Args:
        spec: the experiment.
        profile: its data's profile.
        described: that of the model's input.
    """
    values, memory = largest(spec, described)
    listed = typed_variables(spec, described)
    return {
        "parameters": parameters(with_values(spec, values).model, described),
        "largest": values,
        **_memory_fields(memory),
        "variables": tuple(_planned(spec, listed)),
        "suggested_layout": _suggested(spec, lambda: layouts.models_of_space(spec, profile), are_all=True),
    }


def fields_of_built_model(
    spec: ExperimentSpec, tuned: FineTuningPlan | None, known: KnownState | None, *, has_data: bool
) -> dict[str, Any]:
    """Return the same fields for a model without formulas, as a worker has built it."""
    if known is None:
        can_be_built = has_data and spec.model.info.by_gradient and not spec.model.info.trains_itself
        note = NOT_BUILT if can_be_built else ""
        fields = {"variables": (), "suggested_layout": (), "variables_note": note, "largest": {}}
        parameter_count = tuned.trainable if tuned is not None else None
        return {**fields, "parameters": parameter_count, **_memory_fields(None)}
    try:
        memory = known.state.memory(spec.fit, spec.mesh)
    except ValueError:
        # Reported at the rule by `check_layout`.
        memory = None
    return {
        "parameters": known.state.parameters,
        "largest": {},
        "variables_note": known.note,
        **_memory_fields(memory),
        "variables": tuple(_planned(spec, known.state.listed())),
        "suggested_layout": _suggested(spec, lambda: [known.state.listed()], are_all=spec.search is None),
    }


def _memory_fields(memory: DeviceMemory | None) -> dict[str, Any]:
    return {
        "memory_per_device": memory.total if memory is not None else None,
        "memory": Memory(**memory._asdict()) if memory is not None else None,
    }


def _planned(spec: ExperimentSpec, listed: list[Variable]) -> Iterator[PlannedVariable]:
    for variable in listed:
        rules = rules_for(variable, spec.mesh) if spec.mesh is not None else []
        rule = rules[0][0] if rules else None
        try:
            held = device_shape(variable, spec.mesh)
        except ValueError:
            # Reported by `check_layout` at the rule.
            held, rule = variable.shape, None
        yield PlannedVariable(
            path=variable.path,
            shape=variable.shape,
            dtype=variable.dtype,
            trainable=variable.trainable,
            rule=rule,
            axes=spec.mesh.layout[rule].axes if spec.mesh is not None and rule is not None else (),
            device_shape=held,
            bytes=variable.bytes_of(held),
        )


def _suggested(
    spec: ExperimentSpec, models: Callable[[], list[list[Variable]]], *, are_all: bool
) -> tuple[LayoutRule, ...]:
    """Return the rules from `suggest_rules` for the first axis other than the batch axis."""
    mesh = spec.mesh
    axis = next((name for name in mesh.axis_names if name != mesh.batch_axis), None) if mesh else None
    if mesh is None or axis is None:
        return ()
    return suggest_rules(mesh, models(), axis, are_all=are_all)
