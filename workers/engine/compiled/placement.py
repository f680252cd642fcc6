"""Places a program's arrays on a mesh: its state, its batches and its constants."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from workers.engine.arrays import Array
from workers.engine.models.mesh import MeshDistribution


class MeshPlacement:
    """Where the arrays of a program are on a mesh.

    Args:
        mesh: the distribution under which the model was built.
    """

    def __init__(self, mesh: MeshDistribution) -> None:
        self._mesh = mesh
        self._whole = mesh.sharding()

    @property
    def devices(self) -> Sequence[Any]:
        """The mesh's devices, in its order."""
        return list(self._mesh.device_mesh.backend_mesh.devices.flat)

    def batches(self, array: Array) -> Any:
        """Copy batches, (batches, rows, …), to the devices that share each of them, in one transfer."""
        return jax.device_put(array, self._mesh.sharding(None, self._axis(array.shape[1])))

    def rows(self, array: Array) -> Any:
        """Copy one batch, (rows, …), to the devices that share it."""
        return jax.device_put(array, self._mesh.sharding(self._axis(len(array))))

    def whole(self, tree: Any) -> Any:
        """Copy arrays whole to each device."""
        return jax.device_put(tree, self._whole)

    def divided(self, rows: Any) -> Any:
        """Divide a batch, (rows, …), among the devices inside a compiled function."""
        return jax.lax.with_sharding_constraint(rows, self._mesh.sharding(self._axis(len(rows))))

    def shardings(self, tree: Any) -> Any:
        """Return the shardings of a tree's arrays."""
        return jax.tree.map(lambda array: array.sharding, tree)

    def _axis(self, rows: int) -> str | None:
        """Return the axis that divides a batch; None if it does not divide, and each device has it whole."""
        axis: str = self._mesh.batch_dim_name
        return axis if rows % self._mesh.num_model_replicas == 0 else None


def host_copy(array: Any) -> Array:
    """Copy an array to the host, shard by shard: a divided array would keep its copy as long as it lives."""
    sharding = getattr(array, "sharding", None)
    if sharding is None or len(sharding.device_set) == 1:
        return np.array(array)
    copy = np.empty(array.shape, array.dtype)
    for shard in array.addressable_shards:
        if shard.replica_id == 0:
            copy[shard.index] = np.asarray(shard.data)
    return copy
