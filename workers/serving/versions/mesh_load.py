"""Prepares the load of a version that is larger than one device on the devices of its mesh."""

import asyncio
import math
import os
import shutil
import tempfile
from pathlib import Path

from jobs.messages.release import ReleasedMesh
from jobs.spec.json_types import JsonObject
from workers.serving.versions.artifacts import LOADING
from workers.serving.versions.gpu_environment import gpus_of_mesh


class MeshLoad:
    """The devices and the folder with which a child loads a version on its mesh.

    Its folder has the weights as a file of their own for a time, from which each device reads its part. The
    child deletes the file, unless it is killed.

    Args:
        mesh: the version's.
        cache: the folder of the cached model, on whose disk the file is written.
    """

    def __init__(self, mesh: ReleasedMesh, cache: Path) -> None:
        self._mesh = mesh
        self._folder = tempfile.mkdtemp(prefix=LOADING, dir=cache)

    def header(self) -> JsonObject:
        """Return the part `mesh` of the load frame."""
        gpus = gpus_of_mesh(os.environ, math.prod(self._mesh.shape))
        return {"mesh": self._mesh.model_dump(mode="json"), "gpus": gpus, "folder": self._folder}

    async def close(self) -> None:
        """Delete the folder. The child must have ended."""
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
