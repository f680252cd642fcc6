"""Divides code into lines, and makes the characters visible that would hide others."""

import re

_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def lines_of(text: str) -> list[str]:
    """Split a text into lines without their ends, as Python's parser counts them."""
    # `splitlines` also ends lines at form feeds and the like.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def with_visible_marks(text: str) -> str:
    """Replace the characters that change the direction of writing by their numbers.

    They make code look different from the code that runs.
    """
    return _DIRECTIONS.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
