"""Declares the endings of numbers that multiply them, such as k in 45k and M in 1.5M."""

import re

MAGNITUDES = {
    **dict.fromkeys(["k", "K", "tsd", "Tsd", "thousand", "тыс", "千"], 3),
    **dict.fromkeys(["万", "萬"], 4),
    **dict.fromkeys(["lakh", "lakhs", "lac"], 5),
    **dict.fromkeys(
        ["M", "m", "MM", "mn", "mln", "mio", "Mio", "million", "millions", "Million", "Millionen", "млн"], 6
    ),
    **dict.fromkeys(["Cr", "crore", "crores"], 7),
    **dict.fromkeys(["亿", "億"], 8),
    **dict.fromkeys(["B", "b", "G", "bn", "Bn", "bln", "mrd", "Mrd", "billion", "billions", "млрд"], 9),
    **dict.fromkeys(["T", "tn", "trn", "trillion", "trillions"], 12),
}
"""The power of ten of each ending. Each may have a dot behind it."""
UNITS_TOO = frozenset({"m"})
"""Metres: they multiply only beside other magnitudes."""
NAMES = "|".join(sorted(MAGNITUDES, key=lambda name: (-len(name), name)))
"""The endings as a part of a regular expression, for both `re` and RE2."""
_THOUSANDS_OF = frozenset({"€", "EUR", "CHF"})
"""In front of these, T is a thousand, as accountants in German write it."""


def power_of(ending: str, currency: str = "") -> int | None:
    """Return the power of ten of an ending that multiplies; None for other texts.

    Args:
        ending: the text behind the number.
        currency: the currency behind the ending.
    """
    if ending == "T" and currency in _THOUSANDS_OF:
        return MAGNITUDES["k"]
    return MAGNITUDES.get(ending.removesuffix("."))


def ending_pattern(currency: str) -> re.Pattern[str]:
    """Return the expression that finds the magnitude of a number, and the currency behind it."""
    behind = rf"({re.escape(currency)})?" if currency else "()"
    return re.compile(rf"[0-9.,] *((?:{NAMES})\.?) *{behind}[ )-]*$")
