"""Chooses the devices on which a stored model is loaded: those of its mesh, or one."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from keras import distribution

from jobs.spec.sections.mesh import MeshSpec
from workers.engine.models.mesh import use_mesh


@contextmanager
def leaving_mesh() -> Iterator[None]:
    """Return to a single device at the end: the next task of this process may have no mesh."""
    try:
        yield
    finally:
        distribution.set_distribution(None)


@contextmanager
def loading_on(mesh: MeshSpec | None) -> Iterator[None]:
    """Divide the models that are loaded inside over a mesh, if this process has its devices.

    Afterwards they are called without the mesh: each batch is given whole to every device, so it may have any
    number of rows.
    """
    if mesh is None or not has_devices(mesh):
        yield
        return
    with leaving_mesh():
        use_mesh(mesh, None, 1)
        yield


def has_devices(mesh: MeshSpec) -> bool:
    """Return whether this process has the devices of a mesh."""
    # JAX raises it for a kind of which it has none.
    with suppress(RuntimeError):
        return len(distribution.list_devices(mesh.kind)) >= mesh.size()
    return False
