"""Draws how a mesh divides a batch."""

from itertools import product
from typing import NamedTuple

from jobs.spec.sections.mesh import MeshSpec
from webapp.report_figures.mesh.devices import HUES, device_ranges

MAX_DRAWN = 16
ROW, GAP, WIDTH = 24, 3, 420


class BatchPart(NamedTuple):
    """A part of each batch, and the devices that get it."""

    y: int
    hue: int
    rows: str
    devices: str


class BatchDrawing(NamedTuple):
    """A batch, its parts, and a sentence about them. One that cannot be divided has no parts."""

    width: int
    height: int
    parts: list[BatchPart]
    more: int
    text: str
    is_divisible: bool


def draw_batch(mesh: MeshSpec, batch: int) -> BatchDrawing:
    """Return a batch of so many rows, cut along the batch axis."""
    shards = mesh.batch_shards()
    at = mesh.axis_names.index(mesh.batch_axis) if mesh.batch_axis is not None else None
    devices: list[list[int]] = [[] for _ in range(shards)]
    for device, place in enumerate(product(*(range(size) for size in mesh.shape))):
        devices[place[at] if at is not None else 0].append(device)
    is_divisible = batch % shards == 0
    length = batch // shards
    parts = [
        BatchPart(
            number * (ROW + GAP),
            number % HUES if shards > 1 else -1,
            f"rows {number * length}–{(number + 1) * length - 1}",
            device_ranges(devices[number]),
        )
        for number in range(min(shards, MAX_DRAWN) if is_divisible else 0)
    ]
    height = max(len(parts) * (ROW + GAP) - GAP, 0)
    more = max(shards - MAX_DRAWN, 0) if is_divisible else 0
    return BatchDrawing(WIDTH, height, parts, more, _sentence(mesh, batch), is_divisible)


def _sentence(mesh: MeshSpec, batch: int) -> str:
    shards, devices = mesh.batch_shards(), mesh.size()
    if devices == 1:
        return f"One device gets all {batch:,} rows of each batch."
    if shards == 1:
        return f"Each of the {devices} devices gets all {batch:,} rows of each batch: no axis divides it."
    if batch % shards:
        return (
            f"A batch of {batch:,} rows cannot be cut into {shards} equal parts along “{mesh.batch_axis}”: "
            f"choose a multiple of {shards}, such as {(batch // shards + 1) * shards:,}."
        )
    each = devices // shards
    sharing = "one device each" if each == 1 else f"{each} devices that share the work on the same rows"
    return (
        f"Each batch of {batch:,} rows is cut into {shards} parts of {batch // shards:,} rows along "
        f"“{mesh.batch_axis}”, for {sharing}."
    )
