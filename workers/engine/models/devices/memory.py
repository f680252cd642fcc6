"""Refuses a stored model that is larger than the devices on which it would be loaded."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax
from keras import distribution

from jobs.spec.sections.mesh import MeshSpec
from workers.engine.errors import BadModel, EngineError, is_out_of_memory
from workers.system.usable_memory import total_memory

WEIGHTS = "model.weights.h5"
"""The file with the weights in a model's file."""
GIB = 1 << 30


class LargerThanDevice(BadModel):
    """A model does not fit on the one device of this process; the message has both sizes."""


class LacksMemory(BadModel):
    """A model would fit on the devices in use, but too little of their memory is free."""


class _Devices(NamedTuple):
    """The devices in use: their name for people, their memory together in bytes, and how to have more."""

    name: str
    memory: int
    remedy: str = "load it on a machine with more memory, or where its mesh has GPUs"


def check_fits(path: Path, mesh: MeshSpec | None = None) -> None:
    """Check that the devices in use have the memory for a stored model: those of the mesh in use, or one.

    Args:
        path: the model's file. One that cannot be read is left to Keras.
        mesh: with which the model was trained, whether it is in use or not.

    Raises:
        LargerThanDevice: one device has not enough.
        BadModel: the mesh in use has not enough.
    """
    used = distribution.distribution()
    needed, found = _weights_bytes(path), _devices_of(used)
    if needed <= found.memory:
        return
    sizes = f"its weights have {_gib(needed)}, and {found.name} {_gib(found.memory)}"
    if used is not None:
        raise BadModel(f"{sizes}: {found.remedy}")
    raise LargerThanDevice(
        f"{sizes}: load it where one device has more memory, such as the CPU of a larger machine, "
        f"{_with_mesh(mesh)}or train a smaller model"
    )


@contextmanager
def naming_lack_of_memory(path: Path, *, on_mesh: bool = False) -> Iterator[None]:
    """Name the model's size and the likely causes if the devices have too little free memory for it.

    Args:
        path: the model's file.
        on_mesh: whether it is divided over several devices.

    Raises:
        LacksMemory: they have.
    """
    try:
        yield
    # XLA has no class of its own for it.
    except Exception as error:
        if isinstance(error, EngineError) or not is_out_of_memory(error):
            raise
        raise LacksMemory(
            f"its weights have {_gib(_weights_bytes(path))}, and too little memory is free: other versions, "
            "such as the one that it replaces, and other processes use the devices too"
            + (", and each device has the variables whole that no layout rule divides" if on_mesh else "")
        ) from error


def device_limit(device: Any) -> int | None:
    """Return the bytes of a device that this process may use; None for a CPU, which reports none."""
    limit = (device.memory_stats() or {}).get("bytes_limit")
    return int(limit) if limit else None


def _with_mesh(mesh: MeshSpec | None) -> str:
    if mesh is None or mesh.size() == 1 or not mesh.layout:
        return ""
    return f"or in a process with the {mesh.size()} devices of its mesh (this one has {len(jax.devices())}), "


def _weights_bytes(path: Path) -> int:
    # Keras has its own messages for files that cannot be read.
    with suppress(OSError, zipfile.BadZipFile, KeyError), zipfile.ZipFile(path) as archive:
        return archive.getinfo(WEIGHTS).file_size
    return 0


def _devices_of(used: Any) -> _Devices:
    """Return the devices of a distribution, or the one that JAX uses without one."""
    devices = jax.devices()[:1] if used is None else list(used.device_mesh.backend_mesh.devices.flat)
    limits = [limit for device in devices if (limit := device_limit(device)) is not None]
    # Simulated devices share the machine's memory.
    if not limits:
        return _Devices("this machine has", total_memory())
    kind = devices[0].device_kind
    if used is None:
        return _Devices(f"the {kind} that this process may use has", limits[0])
    # Each gets a part of the same size, so the smallest decides.
    return _Devices(
        f"of the {len(devices)} devices of its mesh ({kind}) this process may use",
        min(limits) * len(devices),
        "let this process use more of their memory, or train it on a mesh of more devices",
    )


def _gib(size: int) -> str:
    return f"{size / GIB:.3g} GiB"
