"""Loads a model that is larger than one device on the devices of its mesh."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

import jax
from jax.sharding import NamedSharding, PartitionSpec

from jobs.messages.release import ReleasedMesh
from jobs.spec.sections.mesh import MeshSpec
from workers.engine.errors import BadModel
from workers.engine.models.files import load_model

MOST_SIMULATED = 64
"""Simulated CPU devices, as in a spec."""


@dataclass(frozen=True)
class MeshLoad:
    """The devices on which a version is loaded, as the router chose them.

    Attributes:
        mesh: axes and layout rules.
        gpus: for `CUDA_VISIBLE_DEVICES`: as many as the mesh needs, if the server has them.
        folder: for the weights' own file, from which each device reads its part.
    """

    mesh: ReleasedMesh
    gpus: str
    folder: Path

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Read it from the part `mesh` of a load frame."""
        return cls(ReleasedMesh.model_validate(header["mesh"]), header["gpus"], Path(header["folder"]))

    def open_devices(self) -> None:
        """Let this process see its devices, before JAX opens any."""
        os.environ["CUDA_VISIBLE_DEVICES"] = self.gpus
        size = self.spec("cpu").size()
        # For a server without GPUs. XLA's flag for it may be in the environment; this setting wins.
        jax.config.update("jax_num_cpu_devices", min(size, MOST_SIMULATED))

    def spec(self, kind: str) -> MeshSpec:
        """Return the mesh over devices of a kind, whatever the version was trained on.

        Raises:
            ValueError: it is inconsistent.
        """
        return MeshSpec.model_validate({"devices": kind, **self.mesh.model_dump()})

    def load(self, path: Path) -> Any:
        """Load a file; each device gets only its part.

        Raises:
            BadModel: the process has too few devices, or they have too little memory.
            ValueError, TypeError, OSError: from Keras.
        """
        spec = self.spec(jax.default_backend())
        model = load_model(path, self.folder, spec)
        # Loaded on one device, if that has the memory; otherwise the refusal had both sizes.
        if spec.size() > (count := len(jax.devices())):
            raise BadModel(f"its mesh has {spec.size()} devices, and this server may use {count}")
        return model

    def batch_sharding(self, weights: tuple[list[Any], list[Any]]) -> Callable[[int], NamedSharding]:
        """Return the sharding of a batch by its number of rows.

        It is divided along the batch axis, or whole on each device if that does not divide the rows.

        Args:
            weights: of the loaded model.
        """
        mesh, axis = next(chain(*weights)).sharding.mesh, self.mesh.batch_axis

        def choose(rows: int) -> NamedSharding:
            is_divided = axis is not None and rows % mesh.shape[axis] == 0
            return NamedSharding(mesh, PartitionSpec(axis) if is_divided else PartitionSpec())

        return choose
