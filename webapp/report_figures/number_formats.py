"""Draws number formats: their bits on a line of 64, and their range on a line of powers of ten."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from jobs.spec.number_formats import FORMATS, NumberFormat

WIDTH = 320
"""The width of a drawing, in `viewBox` units."""
MOST_BITS = 64
_LIMIT = math.log10(FORMATS["float64"].largest)


class Part(NamedTuple):
    """Bits of one meaning, with their place on the line."""

    name: str
    bits: int
    x: float
    width: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def has_room(self) -> bool:
        """Return whether the count fits into the part."""
        return self.width >= 14


class Mark(NamedTuple):
    """A labelled place on a line."""

    x: float
    label: str


@dataclass(frozen=True)
class FormatFigure:
    """The drawing of a format.

    Attributes:
        entry: the format.
        parts: sign, exponent and mantissa.
        bit_marks: multiples of 8 bits.
        first, last: the ends of its range.
        range_marks: powers of ten.
    """

    entry: NumberFormat
    parts: tuple[Part, ...]
    bit_marks: tuple[Mark, ...]
    first: float
    last: float
    range_marks: tuple[Mark, ...]

    width = WIDTH

    @property
    def largest(self) -> str:
        return short(self.entry.largest)

    @property
    def smallest(self) -> str:
        return short(self.entry.smallest)

    @property
    def resolution(self) -> str:
        return short(self.entry.resolution)

    @property
    def range_width(self) -> float:
        return round(self.last - self.first, 1)

    @property
    def description(self) -> str:
        """Return the drawing in words."""
        return (
            f"{self.entry.name}: 1 bit for the sign, {self.entry.exponent} for the exponent and "
            f"{self.entry.mantissa} for the mantissa; from {self.smallest} to {self.largest}"
        )


def figure_of(entry: NumberFormat) -> FormatFigure:
    """Return the drawing of a format."""
    unit, x, parts = WIDTH / MOST_BITS, 0.0, []
    for name, count in (("sign", 1), ("exponent", entry.exponent), ("mantissa", entry.mantissa)):
        parts.append(Part(name, count, round(x, 1), round(count * unit, 1)))
        x += count * unit
    return FormatFigure(
        entry=entry,
        parts=tuple(parts),
        bit_marks=tuple(Mark(bits * unit, str(bits)) for bits in (8, 16, 32, 64)),
        first=_place(entry.smallest),
        last=_place(entry.largest),
        range_marks=tuple(
            Mark(_place(10.0**power), f"1e{power}" if power else "1") for power in (-300, -150, 0, 150, 300)
        ),
    )


def _place(number: float) -> float:
    return round(WIDTH * (math.log10(number) + _LIMIT) / (2 * _LIMIT), 1)


def short(number: float) -> str:
    """Return a number with two digits, and a whole one below a million with all of its digits."""
    if 1 <= number < 1e6:
        return f"{number:,.0f}".replace(",", " ")
    # Powers of ten are hard to read where a decimal fraction is short.
    return f"{number:.2g}" if 1e-3 <= number < 1 else f"{number:.1e}"
