"""Describes the floating point formats in which layers compute and keep their weights.

A test compares the values with those of NumPy and ml_dtypes.
"""

import math
from typing import NamedTuple


class NumberFormat(NamedTuple):
    """A binary floating point format with one sign bit.

    Attributes:
        name: the name in NumPy or ml_dtypes.
        exponent: bits of the exponent; they determine the range.
        mantissa: bits of the mantissa; they determine the resolution.
        has_infinities: whether the largest exponent is reserved for infinities and NaN, as in IEEE 754.
            Without, only one pattern is NaN, as in e4m3 of the OCP 8-bit formats.
    """

    name: str
    exponent: int
    mantissa: int
    has_infinities: bool = True

    @property
    def bits(self) -> int:
        """Return the size of one number in bits."""
        return 1 + self.exponent + self.mantissa

    @property
    def bytes(self) -> int:
        """Return the size of one number in bytes."""
        return self.bits // 8

    @property
    def bias(self) -> int:
        """Return the difference between the stored exponent and its value."""
        return int(2 ** (self.exponent - 1) - 1)

    @property
    def largest(self) -> float:
        """Return the largest finite number. Larger results overflow."""
        step = 2.0**-self.mantissa
        if self.has_infinities:
            return (2 - step) * 2.0**self.bias
        return (2 - 2 * step) * 2.0 ** (self.bias + 1)

    @property
    def smallest(self) -> float:
        """Return the smallest number with full resolution. Smaller ones lose digits, then become 0."""
        return float(2.0 ** (1 - self.bias))

    @property
    def resolution(self) -> float:
        """Return the distance between 1 and the next larger number."""
        return float(2.0**-self.mantissa)

    @property
    def digits(self) -> float:
        """Return the resolution in decimal digits; the first bit of each number is not stored."""
        return round((self.mantissa + 1) * math.log10(2), 1)


FORMATS = {
    entry.name: entry
    for entry in (
        NumberFormat("float64", 11, 52),
        NumberFormat("float32", 8, 23),
        NumberFormat("bfloat16", 8, 7),
        NumberFormat("float16", 5, 10),
        NumberFormat("float8_e4m3fn", 4, 3, has_infinities=False),
        NumberFormat("float8_e5m2", 5, 2),
    )
}
"""By name, from the finest to the coarsest."""
