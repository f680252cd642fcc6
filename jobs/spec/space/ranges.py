"""Computes values in numeric ranges on three scales, with or without a step.

The scales and a step's meaning are KerasTuner's (`hp.Int`, `hp.Float`): with `linear` a step is added, with
`log` it multiplies, and `reverse_log` uses the same distances from the top downwards.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, overload

Sampling = Literal["linear", "log", "reverse_log"]

DIGITS = 12
"""Significant digits of grid values, so that 0.1 + 2 × 0.1 is 0.3 on every page and in every key."""
FINEST = 1e-11
"""The smallest step, relative to the largest value, at which neighbours differ within `DIGITS`."""
SLACK = 1e-9
"""The fraction of a step that rounding may be short of the upper bound."""


def value_at(fraction: float, low: float, high: float, sampling: Sampling) -> float:
    """Map a fraction in [0, 1] to [low, high]."""
    if sampling == "log":
        return low * math.pow(high / low, fraction)
    if sampling == "reverse_log":
        return high + low - low * math.pow(high / low, 1 - fraction)
    return low + fraction * (high - low)


def fraction_of(value: float, low: float, high: float, sampling: Sampling) -> float:
    """Map a value in [low, high] to its fraction in [0, 1]; inverts `value_at`."""
    # Every fraction maps to the single value.
    if low == high:
        return 0.5
    if sampling == "log":
        fraction = math.log(value / low) / math.log(high / low)
    elif sampling == "reverse_log":
        fraction = 1 - math.log((high + low - value) / low) / math.log(high / low)
    else:
        fraction = (value - low) / (high - low)
    return min(max(fraction, 0.0), 1.0)


def rounded(value: float) -> float:
    """Round a value to `DIGITS` significant digits."""
    return float(f"{value:.{DIGITS}g}")


def closest_gap(low: float, step: float, sampling: Sampling) -> float:
    """Return the smallest distance between two neighbours in a stepped range."""
    return step if sampling == "linear" else low * (step - 1)


class Steps(Sequence[float]):
    """A stepped range's values, ascending; computed on access, because there may be billions.

    Args:
        low: the lower bound; always a value, unless the scale is `reverse_log`.
        high: the upper bound; a value if the steps meet it.
        step: added or multiplied, depending on the scale.
        sampling: the scale.
    """

    def __init__(self, low: float, high: float, step: float, sampling: Sampling) -> None:
        self._low, self._high, self._step, self._sampling = low, high, step, sampling
        whole = (high - low) / step if sampling == "linear" else math.log(high / low) / math.log(step)
        # Rounding may put the quotient just below a whole number, and the upper bound would be lost.
        self._last = math.floor(whole * (1 + FINEST) + SLACK)

    def __len__(self) -> int:
        return self._last + 1

    def __iter__(self) -> Iterator[float]:
        return (self._value(i) for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> list[float]: ...
    def __getitem__(self, index: int | slice) -> float | list[float]:
        places = range(len(self))[index]
        return [self._value(i) for i in places] if isinstance(places, range) else self._value(places)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.nearest(value) == value

    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        """Return the position of `value`, which the range must contain exactly."""
        place = self.place(value) if isinstance(value, int | float) else 0
        if value in self and place in range(len(self))[start:stop]:
            return place
        raise ValueError(f"{value!r} is no step from {self._low} to {self._high}")

    def nearest(self, value: float) -> float:
        """Return the value in the range that is closest to `value`."""
        return self._value(self.place(value))

    def _value(self, place: int) -> float:
        if self._sampling == "linear":
            value = self._low + place * self._step
        elif self._sampling == "log":
            value = self._low * self._step**place
        else:
            value = self._high + self._low - self._low * self._step ** (self._last - place)
        # Rounding to `DIGITS` may pass a bound that has more digits.
        return min(max(rounded(value), self._low), self._high)

    def place(self, value: float) -> int:
        """Return the closest value's position."""
        inside = min(max(value, self._low), self._high)
        if self._sampling == "linear":
            guess = round((inside - self._low) / self._step)
        elif self._sampling == "log":
            guess = round(math.log(inside / self._low) / math.log(self._step))
        else:
            above = (self._high + self._low - inside) / self._low
            guess = self._last - round(math.log(above) / math.log(self._step))
        # Rounding of the quotient or the logarithm may miss the closest position by one.
        near = {min(max(guess + by, 0), self._last) for by in (-1, 0, 1)}
        return min(near, key=lambda place: abs(self._value(place) - inside))


def whole_steps(low: int, high: int, step: int, sampling: Sampling) -> Sequence[int]:
    """List the whole numbers in a stepped range, ascending; powers are exact."""
    if sampling == "linear":
        return range(low, high + 1, step)
    rising = []
    value = low
    while value <= high:
        rising.append(value)
        value *= step
    return rising if sampling == "log" else [high + low - value for value in reversed(rising)]


def closest(ascending: Sequence[int], value: int) -> int:
    """Return the item in an ascending sequence that is closest to a number."""
    place = bisect_left(ascending, value)
    return min(ascending[max(place - 1, 0) : place + 1], key=lambda item: abs(item - value))
