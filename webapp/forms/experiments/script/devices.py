"""Converts between the fields for a script's devices and the mesh in its spec."""

import math
import re
from collections.abc import Mapping
from typing import Any

SIMULATED = "simulated"
CHOICES = (
    ("", "Those of its slots"),
    (SIMULATED, "Simulated CPU devices of JAX"),
    ("gpu", "GPUs, one for each slot"),
    ("tpu", "TPUs"),
)
EXAMPLE = "data=2, model=4"
_NUMBER = re.compile(r"[0-9]{1,9}")
Json = dict[str, Any]


def read_axes(text: str) -> dict[str, int]:
    """Return the size of each axis, such as `data=2, model=4`; a number alone is one axis `data`.

    Raises:
        ValueError: the text is no list of axes.
    """
    if _NUMBER.fullmatch(text.strip()):
        text = f"data={text.strip()}"
    axes: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, size = (side.strip() for side in part.partition("="))
        if not (name and equals and _NUMBER.fullmatch(size)):
            raise ValueError(f"{part[:50]!r} is no axis; write names and numbers, such as {EXAMPLE}")
        if name in axes:
            raise ValueError(f"the axis {name!r} is named twice")
        axes[name] = int(size)
    return axes


def mesh_from(base: Json, devices: str, axes: Mapping[str, int]) -> Json | None:
    """Return the mesh that the fields describe; None for the devices of the slots.

    Args:
        base: the mesh of the spec that is revised, whose other fields stay.
        devices: one of `CHOICES`.
        axes: the size of each axis.
    """
    if not devices or not axes:
        return None
    shape, names = list(axes.values()), list(axes)
    kept: Json = {name: base[name] for name in ("memory_fraction", "preallocate") if name in base}
    batch = base.get("batch_axis", names[0])
    is_kept = batch is None or batch in names
    mesh: Json = {"shape": shape, "axis_names": names, "batch_axis": batch if is_kept else names[0]}
    if devices == SIMULATED:
        return {"devices": "cpu", "simulate": math.prod(shape), **mesh}
    # Devices that the spec names stay as long as their number does.
    named = base.get("devices")
    same = isinstance(named, list) and devices_of(base) == devices and len(named) == math.prod(shape)
    return {"devices": named if same else devices, **mesh, **kept}


def devices_of(mesh: Json) -> str:
    """Return the choice that shows a mesh; empty without one."""
    named = mesh.get("devices", "cpu") if mesh else ""
    first = str(named[0] if isinstance(named, list) and named else named).partition(":")[0]
    return SIMULATED if first == "cpu" else first


def axes_text(mesh: Json) -> str:
    """Return the text that shows a mesh's axes."""
    shape, names = mesh.get("shape"), mesh.get("axis_names")
    if not isinstance(shape, list) or not isinstance(names, list):
        return ""
    return ", ".join(f"{name}={size}" for name, size in zip(names, shape, strict=False))
