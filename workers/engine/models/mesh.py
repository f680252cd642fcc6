"""Sets the device mesh for models that are built afterwards."""

from collections.abc import Sequence
from typing import Any

import jax
from keras import distribution

from jobs.spec.checks import patterns
from jobs.spec.plan.layout_rules import check_layout, unmatched_rules
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.templates.layers import Variable
from workers.engine.errors import BadLayout, BadSpec
from workers.engine.models import keras_private
from workers.engine.models.devices.grouped_convolutions import correct_gradients

SEED_STATE = "seed_generator_state"
"""Name of the variables of random generators. Every device holds them whole, whatever the rules match."""
Axes = tuple[str | None, ...]
"""The mesh axis along which each dimension of an array is divided; None for those that are not."""
_REPLICA = "replica"


class LinearLayoutMap(distribution.LayoutMap):
    """Keras' map from patterns to layouts: patterns are matched in linear time, and the first one applies."""

    def __getitem__(self, path: str) -> Any:
        """Return a path's layout, or None."""
        for match in self:
            if match == path or patterns.matches_all_of(match, path):
                return super().__getitem__(match)
        return None

    def __setitem__(self, match: str, layout: Any) -> None:
        """Add a rule; a second one with the same pattern never applies."""
        if match not in list(self):
            super().__setitem__(match, layout)


class MeshDistribution(distribution.ModelParallel):
    """Keras' distribution over a mesh, which also takes batches that the mesh does not divide.

    Such a batch is given whole to every device, which computes the same as one device: filling it with other
    rows would change the statistics of batch normalization and metrics without weights.

    Args:
        rules: the layout rules.
        batch_axis: the mesh axis along which batches are divided.
    """

    def __init__(self, rules: LinearLayoutMap, batch_axis: str) -> None:
        # With several processes, Keras can shard only `tf.data` data sets by itself and rejects arrays.
        super().__init__(layout_map=rules, batch_dim_name=batch_axis, auto_shard_dataset=False)
        self._rules = rules

    def axes_for(self, variable: Any) -> Axes:
        """Return the mesh axis of each of a variable's dimensions by the rules.

        A rule that does not fit the variable leaves it whole; `live_shardings.check_model` then refuses the
        model with a sentence, where JAX would fail with a message about its own types.
        """
        whole: Axes = (None,) * len(variable.shape)
        layout = None if variable.name == SEED_STATE else self._rules[variable.path]
        return layout.axes if layout is not None and self._fits(variable, layout.axes) else whole

    def sharding(self, *axes: str | None) -> jax.sharding.NamedSharding:
        """Return the sharding of arrays whose dimensions are divided along these axes."""
        return jax.sharding.NamedSharding(self.device_mesh.backend_mesh, jax.sharding.PartitionSpec(*axes))

    def get_data_layout(self, data_shape: Sequence[int]) -> Any:
        """Return the layout of a batch: divided along its rows, or whole if they do not divide."""
        axes: list[str | None] = [None] * len(data_shape)
        if axes and data_shape[0] % self.num_model_replicas == 0:
            axes[0] = self.batch_dim_name
        return distribution.TensorLayout(axes, self.device_mesh)

    def get_variable_layout(self, variable: Any) -> Any:
        """Return the layout of a variable: the one that it has already, or the one by the rules."""
        own = keras_private.layout_of(variable)
        return distribution.TensorLayout(self.axes_for(variable), self.device_mesh) if own is None else own

    def get_tensor_layout(self, path: str) -> None:
        """Return None: rules are for variables. Keras would apply them to the outputs of layers as well."""
        del path

    def _fits(self, variable: Any, axes: Sequence[str | None]) -> bool:
        named = [axis for axis in axes if axis is not None]
        sizes = dict(zip(self.device_mesh.axis_names, self.device_mesh.shape, strict=True))
        return (
            variable.name != SEED_STATE
            and len(axes) == len(variable.shape)
            and len(set(named)) == len(named)
            and all(
                size % sizes[axis] == 0
                for size, axis in zip(variable.shape, axes, strict=True)
                if axis is not None
            )
        )


def use_mesh(
    mesh: MeshSpec | None,
    variables: Sequence[Variable] | None,
    batch_size: int,
    *,
    allows_unmatched: bool = False,
) -> None:
    """Set Keras' distribution to `mesh`, or to none.

    Args:
        mesh: devices, axes and layout rules; None for a single device.
        variables: the model's variables, to check the layout rules; None to check none.
        batch_size: rows in a batch.
        allows_unmatched: whether a rule may match nothing, since it may match in another model of a search.

    Raises:
        BadLayout: a rule matches no variable or does not divide one, or the batch does not divide.
        BadSpec: this process has fewer devices than the mesh needs.
    """
    if mesh is None:
        distribution.set_distribution(None)
        return
    if variables is not None:
        check_rules(mesh, variables, batch_size, allows_unmatched=allows_unmatched)
    keras_private.lay_out_each_batch()
    correct_gradients()
    distribution.set_distribution(_distribution(mesh))


def check_rules(
    mesh: MeshSpec, variables: Sequence[Variable], batch_size: int, *, allows_unmatched: bool
) -> None:
    """Check the layout rules against a model's variables; see `use_mesh`.

    Raises:
        BadLayout: they do not fit.
    """
    problems = check_layout(mesh, list(variables), batch_size)
    if allows_unmatched:
        unmatched = unmatched_rules(mesh, variables)
        problems = [problem for problem in problems if problem not in unmatched]
    if problems:
        raise BadLayout("; ".join(problem.message for problem in problems))


def current() -> MeshDistribution | None:
    """Return the distribution that this process uses now; None for a single device."""
    found = distribution.distribution()
    return found if isinstance(found, MeshDistribution) else None


def restore(used: MeshDistribution | None) -> None:
    """Set a distribution again, which `keras.backend.clear_session` forgets without a word."""
    distribution.set_distribution(used)


def _distribution(mesh: MeshSpec) -> MeshDistribution:
    devices, names, shape = _devices(mesh), list(mesh.axis_names), mesh.shape
    if mesh.batch_axis is None:
        # Without a batch axis Keras would shard the batch over the first axis, so add an axis of size 1.
        names, shape = [_REPLICA, *names], (1, *shape)
    device_mesh = distribution.DeviceMesh(shape, names, devices)
    layout = LinearLayoutMap(device_mesh)
    for rule in mesh.layout:
        layout[rule.match] = tuple(rule.axes)
    return MeshDistribution(layout, mesh.batch_axis or _REPLICA)


def _devices(mesh: MeshSpec) -> list[str]:
    # Devices that the mesh names are the only ones that this process sees, and have new numbers in it.
    names = distribution.list_devices(mesh.kind)
    if len(names) < mesh.size():
        raise BadSpec(f"the mesh needs {mesh.size()} {mesh.kind} devices, this process has {len(names)}")
    return names[: mesh.size()]
