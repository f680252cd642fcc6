"""Reads the numbers of JSON exactly: those that a float64 does not hold become texts."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.reading.exact_numbers import LARGEST_EXACT, MAX_DIGITS
from workers.engine.data.reading.json_document import loads

_LONG = b"0" * 20
"""A number of so many digits and points: orjson and a float64 may keep only the first ones."""
_AS_ZEROS = bytes.maketrans(b"123456789.", b"0000000000")


class OtherKind(Exception):
    """Numbers do not fit the types that their column has.

    Attributes:
        name: the key.
        kind: a type with which they fit: None for floats, which have gaps, and else texts.
    """

    def __init__(self, name: str, kind: type) -> None:
        super().__init__()
        self.name, self.kind = name, kind


def with_kinds[Read](kinds: dict[str, set[type]], read: Callable[[], Read]) -> Read:
    """Read again with further types until these fit all numbers."""
    while True:
        try:
            return read()
        except OtherKind as other:
            kinds[other.name].add(other.kind)


def numbers_of(name: str, values: list[Any], kinds: set[type], dtype: np.dtype[Any]) -> Array:
    """Return numbers and gaps as an array with a type.

    Raises:
        OtherKind: a whole number is outside of the type, or is another number in it.
    """
    try:
        numbers = np.asarray(values, dtype)
    except OverflowError:
        raise OtherKind(name, type(None) if dtype.kind == "i" else str) from None
    if dtype.kind == "f" and not kinds & {float, WrittenFloat}:
        large = np.flatnonzero(np.abs(numbers) > LARGEST_EXACT)
        # Not as NumPy's numbers, for which both would be floats.
        if any(
            values[row] != number for row, number in zip(large.tolist(), numbers[large].tolist(), strict=True)
        ):
            raise OtherKind(name, str)
    return numbers


class WrittenFloat(float):
    """A number with the text as which it was written.

    Attributes:
        text: the text.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "WrittenFloat":
        """Return a decimal's number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def parsed(line: bytes) -> Any:
    """Return a line's value. Numbers with many digits are kept exactly, which orjson reads as floats.

    Raises:
        JSONDecodeError: it is no JSON.
    """
    # A fourth of the time that a regular expression takes.
    if _LONG not in line.translate(_AS_ZEROS):
        return loads(line)
    return json.loads(line, parse_float=WrittenFloat, parse_int=_whole, parse_constant=lambda _: None)


def _whole(digits: str) -> int | str:
    # Python refuses to convert far longer texts.
    return int(digits) if len(digits) <= MAX_DIGITS else digits


def dtype_of(kinds: set[type]) -> np.dtype[Any] | None:
    """Return the column type for values with these types; None for texts."""
    types = kinds - {type(None)}
    if kinds == {bool}:
        return np.dtype(bool)
    if types and types <= {int, float, WrittenFloat}:
        return np.dtype(np.int64 if kinds == {int} else np.float64)
    return None
