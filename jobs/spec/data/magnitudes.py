"""Declares the endings of numbers that multiply them, such as k in 45k and M in 1.5M."""

import re

MAGNITUDES = {
    **dict.fromkeys(("k", "K", "tsd", "Tsd", "thousand"), 3),
    **dict.fromkeys(("M", "m", "MM", "mm", "mn", "mln", "mio", "Mio", "million", "millions"), 6),
    **dict.fromkeys(("B", "b", "G", "bn", "Bn", "bln", "mrd", "Mrd", "billion", "billions"), 9),
    **dict.fromkeys(("T", "tn", "trn", "trillion", "trillions"), 12),
}
"""The power of ten of each ending. Each may have a dot behind it."""
UNITS_TOO = frozenset({"m", "mm"})
"""Metres and millimetres: they multiply only beside other magnitudes."""
NAMES = "|".join(sorted(MAGNITUDES, key=lambda name: (-len(name), name)))
"""The endings as a part of a regular expression, for both `re` and RE2."""


def power_of(ending: str) -> int | None:
    """Return the power of ten by which an ending multiplies; None for other texts."""
    return MAGNITUDES.get(ending.removesuffix("."))


def ending_pattern(currency: str) -> re.Pattern[str]:
    """Return the expression that finds the magnitude of a number in front of the end, or of its currency."""
    behind = rf"(?:{re.escape(currency)})?" if currency else ""
    return re.compile(rf"[0-9.,] *((?:{NAMES})\.?) *{behind}[ )-]*$")
