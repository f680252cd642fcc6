"""Draws the memory on a device as stacked bars."""

from typing import NamedTuple

from jobs.spec.plan.mesh.memory import MemoryParts

WIDTH, LEFT, BAR, GAP, TOP = 440, 52, 30, 14, 18
RIGHT = 78
"""Room for the sum behind a bar."""
FEWEST = 58
"""The narrowest segment in which a size is written."""


class Segment(NamedTuple):
    """A part of a bar; its size is written into it if it fits."""

    name: str
    x: float
    width: float
    bytes: int
    is_labelled: bool


class Bar(NamedTuple):
    """A design's memory."""

    label: str
    y: int
    segments: list[Segment]
    end: float
    total: int
    exceeds: bool


class MemoryDrawing(NamedTuple):
    """The bars of designs, and the position of the device's memory; None where that is not drawn."""

    width: int
    height: int
    bars: list[Bar]
    limit: float | None


def draw_memory(designs: dict[str, MemoryParts], capacity: int | None) -> MemoryDrawing:
    """Return a bar for each design, by its label.

    The bars share one scale. A device with much more memory is not drawn, because the bars would vanish.
    """
    largest = max((parts.total for parts in designs.values()), default=0) or 1
    limit = capacity if capacity is not None and capacity <= 4 * largest else None
    scale = (WIDTH - LEFT - RIGHT) / max(largest, limit or 0)
    bars = [
        _bar(label, parts, TOP + number * (BAR + GAP), scale, capacity)
        for number, (label, parts) in enumerate(designs.items())
    ]
    at = round(LEFT + limit * scale, 1) if limit is not None else None
    return MemoryDrawing(WIDTH, TOP + len(bars) * (BAR + GAP), bars, at)


def _bar(label: str, parts: MemoryParts, y: int, scale: float, capacity: int | None) -> Bar:
    x, segments = float(LEFT), []
    for name, size in parts._asdict().items():
        if size:
            width = size * scale
            drawn = round(max(width - 1, 0.5), 1)
            segments.append(Segment(name, round(x, 1), drawn, size, width >= FEWEST))
            x += width
    exceeds = capacity is not None and parts.total > capacity
    return Bar(label, y, segments, round(x, 1), parts.total, exceeds)
