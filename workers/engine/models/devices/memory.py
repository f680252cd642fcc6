"""Refuses a stored model that is larger than the device on which it would be loaded."""

import zipfile
from contextlib import suppress
from pathlib import Path

import jax
from keras import distribution

from workers.engine.errors import BadModel
from workers.system.usable_memory import total_memory

WEIGHTS = "model.weights.h5"
"""The file with the weights in a model's file."""
GIB = 1 << 30


def check_fits(path: Path) -> None:
    """Check that one device has the memory for a stored model, unless a mesh is in use.

    Raises:
        BadModel: it has not; the message has both sizes.
    """
    if distribution.distribution() is not None:
        return
    needed, (name, memory) = _weights_bytes(path), _first_device()
    if needed > memory:
        raise BadModel(
            f"its weights have {needed / GIB:.3g} GiB, and {name} has {memory / GIB:.3g} GiB: load it where "
            "one device has more memory, such as the CPU of a larger machine, or train a smaller model"
        )


def _weights_bytes(path: Path) -> int:
    # Keras has its own messages for files that cannot be read.
    with suppress(OSError, zipfile.BadZipFile, KeyError), zipfile.ZipFile(path) as archive:
        return archive.getinfo(WEIGHTS).file_size
    return 0


def _first_device() -> tuple[str, int]:
    """Return the name and the memory in bytes of the device that JAX uses without a mesh."""
    device = jax.devices()[0]
    # A CPU reports none: its memory is the machine's.
    stats = device.memory_stats() or {}
    if limit := stats.get("bytes_limit"):
        return f"the {device.device_kind} that this process may use", int(limit)
    return "this machine", total_memory()
