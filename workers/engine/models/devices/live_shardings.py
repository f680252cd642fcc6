"""Reads how a built model's variables are divided over the devices, and compares it with the design."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from jobs.messages.reports.shardings import MOST_VARIABLES, LiveVariable, Shardings
from jobs.spec.plan.layout_rules import rules_for, unmatched_rules
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.templates.layers import Variable
from workers.engine.errors import BadLayout
from workers.engine.models import keras_private
from workers.engine.models.mesh import SEED_STATE, Axes, MeshDistribution, check_rules, current

MOST_NAMED = 3
"""How many variables a message names."""
REMEDY = (
    "keras.backend.clear_session() forgets the mesh without a word, as another distribution replaces it; "
    "leave such calls out of the code: each training begins in a new session with the mesh of the experiment"
)


def check_model(model: Any, mesh: MeshSpec, batch_size: int, *, allows_unmatched: bool) -> None:
    """Compare a built and compiled model with the design of its mesh, before its first step.

    Args:
        model: its optimizer is built.
        mesh: the design.
        batch_size: rows in a batch.
        allows_unmatched: whether a layout rule may match nothing; see `mesh.use_mesh`.

    Raises:
        BadLayout: a rule does not fit the model, or a variable is not where the design puts it.
    """
    if problem := difference(model):
        raise BadLayout(problem)
    check_rules(mesh, weights_of(model), batch_size, allows_unmatched=allows_unmatched)


def difference(model: Any) -> str | None:
    """Return a sentence about the variables that are not where the design puts them; None if all are."""
    used = current()
    if used is None:
        first = next(iter(model.variables), None)
        where = "" if first is None else f", and {first.path!r} is {_found(first.value)}"
        return f"the model was designed for a mesh, but the process has no mesh any more{where}: {REMEDY}"
    wrong = [
        f"{variable.path!r} was designed {_described(designed, used)} and is {_found(variable.value)}"
        for variable, designed in _designed(model, used)
        if not _is_at(variable.value, designed, used)
    ]
    if not wrong:
        return None
    more = f", and {len(wrong) - MOST_NAMED} more variables differ" if len(wrong) > MOST_NAMED else ""
    return f"{'; '.join(wrong[:MOST_NAMED])}{more}: {REMEDY}"


def _designed(model: Any, used: MeshDistribution) -> Iterator[tuple[Any, Axes]]:
    """Yield each variable of the model and its optimizer with the axes that the design gives it."""
    for variable in model.variables:
        yield variable, used.axes_for(variable)
    for variable in _of_optimizer(model):
        # The slots of a weight are divided like the weight, whose layout Keras gives them.
        layout = keras_private.layout_of(variable)
        axes: Axes = tuple(getattr(layout, "axes", None) or getattr(layout, "spec", None) or ())
        yield variable, axes + (None,) * (len(variable.shape) - len(axes))


def _of_optimizer(model: Any) -> list[Any]:
    """Return the optimizer's variables; none for a model that its code compiles later."""
    optimizer = getattr(model, "optimizer", None)
    return [] if optimizer is None else list(optimizer.variables)


def _is_at(value: Any, axes: Axes, used: MeshDistribution) -> bool:
    return bool(value.sharding.is_equivalent_to(used.sharding(*axes), value.ndim))


def _described(axes: Axes, used: MeshDistribution) -> str:
    count = used.device_mesh.devices.size
    return f"to be {_listed(axes)} on {count} devices" if any(axes) else f"to be whole on {count} devices"


def _found(value: Any) -> str:
    axes, count = axes_of(value), len(value.sharding.device_set)
    if count == 1:
        return "on one device"
    return f"{_listed(axes)} on {count} devices" if any(axes) else f"whole on {count} devices"


def _listed(axes: Axes) -> str:
    return f"divided by ({', '.join(axis or 'none' for axis in axes)})"


def axes_of(value: Any) -> Axes:
    """Return the mesh axis along which each dimension of a live array is divided."""
    spec = tuple(getattr(value.sharding, "spec", ()))
    axes = tuple("+".join(part) if isinstance(part, tuple) else part for part in spec)
    return axes + (None,) * (value.ndim - len(axes))


def weights_of(model: Any) -> list[Variable]:
    """List a built model's weights for layout rules, as `plan.variables` lists those of a template."""
    trainable = {variable.path for variable in model.trainable_variables}
    weights = (variable for variable in model.weights if variable.name != SEED_STATE)
    return [Variable(weight.path, tuple(weight.shape), weight.path in trainable) for weight in weights]


def read_shardings(model: Any, mesh: MeshSpec, batch_size: int) -> Shardings:
    """Read the shardings of a model's live arrays, beside the designed ones.

    Args:
        model: built and compiled; its optimizer is built.
        mesh: the design.
        batch_size: rows in a batch.
    """
    variables = [variable for variable in model.weights if variable.name != SEED_STATE]
    others = [*model.variables, *_of_optimizer(model)]
    return Shardings(
        shape=mesh.shape,
        axis_names=mesh.axis_names,
        batch_axis=mesh.batch_axis,
        devices=tuple(str(device) for device in _devices_of(variables)),
        batch_size=batch_size,
        variables=tuple(_live(variable, mesh) for variable in variables[:MOST_VARIABLES]),
        left_out=max(len(variables) - MOST_VARIABLES, 0),
        bytes_per_device=_bytes_by_device(others, _devices_of(variables)),
        unmatched=tuple(mesh.layout[i].match for i in _unmatched(mesh, weights_of(model))),
    )


def _live(variable: Any, mesh: MeshSpec) -> LiveVariable:
    value = variable.value
    rules = rules_for(Variable(variable.path, tuple(variable.shape)), mesh)
    designed = rules[0][1].axes if rules else (None,) * value.ndim
    shard = value.sharding.shard_shape(value.shape)
    return LiveVariable(
        path=variable.path,
        shape=tuple(value.shape),
        dtype=str(value.dtype),
        rule=rules[0][0] if rules else None,
        designed=tuple(designed),
        live=axes_of(value),
        shard_shape=tuple(shard),
        shard_bytes=math.prod(shard) * value.dtype.itemsize,
        devices=len(value.sharding.device_set),
    )


def _unmatched(mesh: MeshSpec, variables: Sequence[Variable]) -> list[int]:
    return [int(problem.pointer.split("/")[3]) for problem in unmatched_rules(mesh, variables)]


def _devices_of(variables: Sequence[Any]) -> list[Any]:
    devices = {device for variable in variables for device in variable.value.sharding.device_set}
    return sorted(devices, key=lambda device: device.id)


def _bytes_by_device(variables: Sequence[Any], devices: Sequence[Any]) -> tuple[int, ...]:
    """Return the bytes of these variables' shards on each device."""
    held = dict.fromkeys(devices, 0)
    for variable in variables:
        for shard in variable.value.addressable_shards:
            held[shard.device] = held.get(shard.device, 0) + shard.data.nbytes
    return tuple(held[device] for device in devices)
