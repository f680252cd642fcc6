"""Draws the devices of a mesh as a grid, each with its slice of a variable, and the slices themselves.

A slice has a colour, its indices as text, and a small map of its place in the variable.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from jobs.spec.plan.mesh.placement import Part, Placement, Slice, parts_of
from jobs.spec.sections.mesh import MeshSpec

HUES = 8
"""Colours that people with any colour vision can distinguish. More slices have lighter and darker ones."""
MAX_DRAWN = 64
CELL_WIDTH, CELL_HEIGHT, GAP = 72, 58, 5
MAP_WIDTH, MAP_HEIGHT = 24, 16
LEFT, TOP = 26, 22
LIGHTEST, DARKEST = 0.16, 0.5


class Look(NamedTuple):
    """A slice's colour: the number of the hue, or -1 for a whole variable, and its opacity."""

    hue: int
    opacity: float


class Rectangle(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


class DeviceCell(NamedTuple):
    """A device with its slice."""

    at: Rectangle
    device: int
    look: Look
    lines: tuple[str, ...]
    map: Rectangle
    slice_on_map: Rectangle
    title: str


class DeviceGrid(NamedTuple):
    """All devices, or the first ones of a large mesh. Their labels begin at `left`."""

    width: int
    height: int
    cells: list[DeviceCell]
    left: int
    across: str
    down: str
    drawn: int
    total: int
    text: str


class Block(NamedTuple):
    """A slice in the drawing of a variable, with its devices."""

    at: Rectangle
    look: Look
    lines: tuple[str, ...]
    title: str


class SliceDrawing(NamedTuple):
    """A variable, cut into its slices. The label begins at `left`."""

    width: int
    height: int
    cells: list[Block]
    left: int
    across: str
    down: str
    text: str


class SliceRow(NamedTuple):
    """A slice in the table that has the drawing's content as text."""

    slice: str
    devices: str


def index_text(indices: tuple[int, int], length: int) -> str:
    """Return indices as Python writes them: `:` for all of a dimension, `0:32` for a part."""
    return ":" if indices == (0, length) else f"{indices[0]}:{indices[1]}"


def slice_text(indices: Slice, shape: Sequence[int]) -> str:
    """Return a slice as Python writes it."""
    return f"[{', '.join(index_text(pair, length) for pair, length in zip(indices, shape, strict=True))}]"


def device_ranges(devices: Sequence[int]) -> str:
    """Return numbers with ranges, such as `0–3, 6`."""
    runs: list[list[int]] = []
    for device in devices:
        if runs and device == runs[-1][1] + 1:
            runs[-1][1] = device
        else:
            runs.append([device, device])
    return ", ".join(str(a) if a == b else f"{a}–{b}" if b > a + 1 else f"{a}, {b}" for a, b in runs)


def draw_devices(placement: Placement, mesh: MeshSpec) -> DeviceGrid:
    """Return the devices in the order of the mesh: its first axis goes down, the others across."""
    parts = parts_of(placement, mesh)
    counts = _counts(placement, mesh)
    of_device = {device: part for part in parts for device in part.devices}
    total = mesh.size()
    columns, across, down = _arrangement(mesh)
    # Whole rows, so that the drawing has no ragged end.
    drawn = min(total, max(MAX_DRAWN // columns, 1) * columns)
    left, top = (LEFT if down else 0), TOP
    cells = [
        _cell(device, of_device[device], placement, counts, (left, top, columns)) for device in range(drawn)
    ]
    rows = math.ceil(drawn / columns)
    return DeviceGrid(
        left + columns * (CELL_WIDTH + GAP) - GAP,
        top + rows * (CELL_HEIGHT + GAP) - GAP,
        cells,
        left,
        across,
        down,
        drawn,
        total,
        _sentence(placement, parts, total),
    )


def _arrangement(mesh: MeshSpec) -> tuple[int, str, str]:
    """Return how many devices a row of the drawing has, and the labels of both directions."""
    if len(mesh.shape) == 1:
        return min(mesh.shape[0], 8), f"{mesh.axis_names[0]} →", ""
    across = " × ".join(mesh.axis_names[1:])
    return math.prod(mesh.shape[1:]), f"{across} →", f"← {mesh.axis_names[0]}"


def _counts(placement: Placement, mesh: MeshSpec) -> tuple[int, ...]:
    """Return in how many slices each divided dimension is cut."""
    return tuple(mesh.axis(axis) for axis in placement.axes if axis is not None)


def _look(place: tuple[int, ...], counts: tuple[int, ...]) -> Look:
    """Return a colour: its hue shows the first divided dimension, its strength the others."""
    if not place:
        return Look(-1, LIGHTEST)
    step, steps = place[0] // HUES, math.ceil(counts[0] / HUES)
    for index, count in zip(place[1:], counts[1:], strict=True):
        step, steps = step * count + index, steps * count
    strength = 0.4 if steps == 1 else step / (steps - 1)
    return Look(place[0] % HUES, round(LIGHTEST + (DARKEST - LIGHTEST) * strength, 3))


def _cell(
    device: int, part: Part, placement: Placement, counts: tuple[int, ...], grid: tuple[int, int, int]
) -> DeviceCell:
    left, top, columns = grid
    x = left + device % columns * (CELL_WIDTH + GAP)
    y = top + device // columns * (CELL_HEIGHT + GAP)
    map_at = Rectangle(x + CELL_WIDTH - MAP_WIDTH - 6, y + 6, MAP_WIDTH, MAP_HEIGHT)
    return DeviceCell(
        Rectangle(x, y, CELL_WIDTH, CELL_HEIGHT),
        device,
        _look(part.place, counts),
        _lines(part, placement),
        map_at,
        _on_map(part, placement, map_at),
        f"device {device}: {slice_text(part.slice, placement.weight.shape)}",
    )


def _lines(part: Part, placement: Placement) -> tuple[str, ...]:
    """Return a slice's indices in at most two lines: the dimensions that are divided, else "whole"."""
    divided = [
        f"{pair[0]}:{pair[1]}"
        for pair, axis in zip(part.slice, placement.axes, strict=False)
        if axis is not None
    ]
    if not divided:
        return ("whole",)
    return tuple(divided) if len(divided) < 3 else (divided[0], f"+ {len(divided) - 1} more")


def _on_map(part: Part, placement: Placement, at: Rectangle) -> Rectangle:
    """Return a slice's place in the small map of the variable."""
    shape = placement.weight.shape
    divided = [i for i, axis in enumerate(placement.axes) if axis is not None]
    if not divided:
        return at
    # The last dimension goes across, as in a printed matrix.
    across = divided[-1] if divided[-1] == len(shape) - 1 or len(divided) > 1 else None
    down = divided[0] if divided[0] != across else None
    x, width = _span(part, shape, across)
    y, height = _span(part, shape, down)
    return Rectangle(
        round(at.x + x * at.width, 2),
        round(at.y + y * at.height, 2),
        round(width * at.width, 2),
        round(height * at.height, 2),
    )


def _span(part: Part, shape: Sequence[int], dimension: int | None) -> tuple[float, float]:
    """Return where a slice begins in a dimension, and how long it is, as shares."""
    if dimension is None or not shape[dimension]:
        return 0.0, 1.0
    start, end = part.slice[dimension]
    return start / shape[dimension], (end - start) / shape[dimension]


def _sentence(placement: Placement, parts: Sequence[Part], total: int) -> str:
    weight = placement.weight
    if len(parts) == 1:
        many = f"each of the {total} devices has" if total > 1 else "the device has"
        return f"{weight.path} of shape {list(weight.shape)}: {many} all of it."
    copies = len(parts[0].devices)
    same = f", each on {copies} devices" if copies > 1 else ""
    return (
        f"{weight.path} of shape {list(weight.shape)} is cut into {len(parts)} slices of "
        f"{list(placement.shard)}{same}."
    )


def draw_slices(placement: Placement, mesh: MeshSpec) -> SliceDrawing | None:
    """Return the variable, cut into its slices, each with its devices; None if that needs too many blocks.

    As JAX's `visualize_sharding` does: the array is drawn, and not the devices.
    """
    parts, counts = parts_of(placement, mesh), _counts(placement, mesh)
    if len(parts) > MAX_DRAWN or len(counts) > 2:
        return None
    divided = [i for i, axis in enumerate(placement.axes) if axis is not None]
    is_across = len(counts) == 2 or (bool(divided) and divided[0] == len(placement.weight.shape) - 1)
    columns = counts[-1] if is_across and counts else 1
    rows = len(parts) // columns
    width, height = max(60, min(220, 612 // columns)), 36 if rows > 1 else 44
    left, top = LEFT, TOP
    shape = placement.weight.shape
    blocks = [
        Block(
            Rectangle(left + i % columns * width, top + i // columns * height, width - 2, height - 2),
            _look(part.place, counts),
            (device_ranges(part.devices),),
            f"{slice_text(part.slice, shape)}: devices {device_ranges(part.devices)}",
        )
        for i, part in enumerate(parts)
    ]
    across, down = _dimension_labels(placement, divided, is_across=is_across)
    return SliceDrawing(
        left + columns * width,
        top + rows * height,
        blocks,
        left,
        across,
        down,
        _sentence(placement, parts, mesh.size()),
    )


def _dimension_labels(placement: Placement, divided: Sequence[int], *, is_across: bool) -> tuple[str, str]:
    shape = placement.weight.shape
    if not divided:
        return (f"all {' × '.join(map(str, shape)) or '1'} numbers", "")
    across = f"dimension {divided[-1]}: {shape[divided[-1]]} →" if is_across else ""
    down = f"← dimension {divided[0]}: {shape[divided[0]]}" if not is_across or len(divided) > 1 else ""
    return across, down


def slice_rows(placement: Placement, mesh: MeshSpec) -> list[SliceRow]:
    """Return the slices with their devices as text, at most `MAX_DRAWN` of them."""
    shape = placement.weight.shape
    return [
        SliceRow(slice_text(part.slice, shape), device_ranges(part.devices))
        for part in parts_of(placement, mesh)[:MAX_DRAWN]
    ]
