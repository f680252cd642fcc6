"""Divides the text of code into lines, and makes the characters visible that would hide others."""

import re

_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends, as Python's parser counts them."""
    # `splitlines` also ends lines at form feeds and the like.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def with_visible_marks(text: str) -> str:
    """Return a text with the numbers of the characters that change the direction of writing.

    They make code look different from the code that runs.
    """
    return _DIRECTIONS.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
