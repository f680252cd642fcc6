"""Sets the device mesh for models that are built afterwards."""

from typing import Any

from keras import distribution

from jobs.spec.checks import patterns
from jobs.spec.plan.variables import check_layout
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.templates.layers import Variable
from workers.engine.errors import BadLayout, BadSpec


class LinearLayoutMap(distribution.LayoutMap):
    """Keras' map from patterns to layouts, with patterns that are matched in linear time."""

    def __getitem__(self, path: str) -> Any:
        """Return a path's layout, or None.

        Raises:
            ValueError: several rules match it.
        """
        rules = [match for match in self if match == path or patterns.matches_all_of(match, path)]
        if len(rules) > 1:
            raise ValueError(f"{path!r} matches several layout rules: {rules}")
        return super().__getitem__(rules[0]) if rules else None


def use_mesh(mesh: MeshSpec | None, variables: list[Variable] | None, batch_size: int) -> None:
    """Set Keras' distribution to `mesh`, or to none.

    Args:
        mesh: devices, axes and layout rules; None for a single device.
        variables: the model's variables, to check the layout rules; None to check none.
        batch_size: rows in a batch.

    Raises:
        BadLayout: a rule matches no variable, several rules match one, or a dimension is not divisible.
        BadSpec: this process has fewer devices than the mesh needs.
    """
    if mesh is None:
        distribution.set_distribution(None)
        return
    if variables is not None and (problems := check_layout(mesh, variables, batch_size)):
        raise BadLayout("; ".join(problem.message for problem in problems))
    distribution.set_distribution(_distribution(mesh))


def _distribution(mesh: MeshSpec) -> Any:
    devices, names, shape = _devices(mesh), list(mesh.axis_names), mesh.shape
    if mesh.batch_axis is None:
        # Without a batch axis Keras would shard the batch over the first axis, so add an axis of size 1.
        names, shape = ["replica", *names], (1, *shape)
    device_mesh = distribution.DeviceMesh(shape, names, devices)
    # With several processes, Keras can shard only `tf.data` data sets by itself and rejects arrays.
    if not mesh.layout and len(shape) == 1:
        return distribution.DataParallel(device_mesh=device_mesh, auto_shard_dataset=False)
    layout = LinearLayoutMap(device_mesh)
    for rule in mesh.layout:
        layout[rule.match] = tuple(rule.axes)
    return distribution.ModelParallel(
        layout_map=layout, batch_dim_name=mesh.batch_axis or "replica", auto_shard_dataset=False
    )


def _devices(mesh: MeshSpec) -> list[str]:
    # Devices that the mesh names are the only ones that this process sees, and have new numbers in it.
    names = distribution.list_devices(mesh.kind)
    if len(names) < mesh.size():
        raise BadSpec(f"the mesh needs {mesh.size()} {mesh.kind} devices, this process has {len(names)}")
    return names[: mesh.size()]
