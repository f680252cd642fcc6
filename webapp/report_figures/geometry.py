"""Computes chart geometry, in `viewBox` units."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

LEFT, BOTTOM, TOP, RIGHT = 34, 30, 6, 8
"""The margins around the plotted area, for the labels of the axes."""

SHADES = 9
"""The number of shades of a table's cells; shade 0 has no colour."""


class Tick(NamedTuple):
    """A position on an axis, and its label."""

    at: float
    label: str


class Frame(NamedTuple):
    """A chart whose axes both run from 0 to 1."""

    width: int
    height: int
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]

    @property
    def left(self) -> int:
        """Return the plotted area's left edge."""
        return LEFT

    @property
    def right(self) -> int:
        """Return the plotted area's right edge."""
        return self.width - RIGHT

    @property
    def top(self) -> int:
        """Return the plotted area's upper edge."""
        return TOP

    @property
    def bottom(self) -> int:
        """Return the plotted area's lower edge."""
        return self.height - BOTTOM

    def x(self, share: float) -> float:
        """Return the position of a share between 0 and 1."""
        return round(LEFT + share * (self.right - LEFT), 1)

    def y(self, share: float) -> float:
        """Return the position of a share between 0 and 1, counted from below."""
        return round(self.bottom - share * (self.bottom - TOP), 1)


class Bar(NamedTuple):
    """A vertical bar with the text that explains it."""

    x: float
    y: float
    width: float
    height: float
    title: str


def unit_frame(width: int = 320, height: int = 250) -> Frame:
    """Return a frame for two shares, with ticks at every quarter."""
    empty = Frame(width, height, (), ())
    quarters = [quarter / 4 for quarter in range(5)]
    return empty._replace(
        x_ticks=tuple(Tick(empty.x(at), f"{at:g}") for at in quarters),
        y_ticks=tuple(Tick(empty.y(at), f"{at:g}") for at in quarters),
    )


def polyline(frame: Frame, points: Iterable[tuple[float, float]]) -> str:
    """Return the `points` for a line through (x, y) shares."""
    return " ".join(f"{frame.x(x)},{frame.y(y)}" for x, y in points)


class Span(NamedTuple):
    """A value with its interval on a horizontal scale from 0 to 100; None where it is unknown."""

    at: float | None
    low: float | None
    width: float | None


class Scale(NamedTuple):
    """A horizontal scale that several table rows share."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return a value's position, from 0 to 100."""
        return round(100 * (value - self.low) / (self.high - self.low), 1)

    def span(self, value: float | None, low: float | None, high: float | None) -> Span:
        """Return the positions of a value and its interval."""
        at = None if value is None else self.at(value)
        if low is None or high is None:
            return Span(at, None, None)
        return Span(at, self.at(low), round(max(self.at(high) - self.at(low), 0.5), 1))


def scale_of(values: Iterable[float | None]) -> Scale:
    """Return a scale that holds all known values, with room at both ends."""
    numbers = [value for value in values if value is not None]
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return Scale(low - room, high + room)


def bar_lengths[T](rows: Sequence[T], value: Callable[[T], float | None]) -> list[float]:
    """Return each row's bar length, from 0 to 100; the largest absolute value has 100."""
    sizes = [abs(value(row) or 0.0) for row in rows]
    top = max(sizes, default=0.0) or 1.0
    return [round(100 * size / top, 1) for size in sizes]
