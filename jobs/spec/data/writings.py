"""Decides when two categories or labels are the same value in another writing.

Training and serving read values by the same functions, so a request has the value that a file would have.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Literal

Writing = Literal["exact", "trimmed", "folded"]
"""How words of a category are compared: as they are, without blanks around them, or `folded`."""

_NUMBER = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*?)0*)?", re.ASCII)
_FORMAT = "Cf"
"""Unicode's category of characters without a width, such as a byte order mark inside of a text."""


def folded(text: str) -> str:
    """Return a text that is equal for all writings of a value.

    Writings differ in case, in blanks, in dots at the end, in Unicode's form (`é` as one character or two,
    full-width letters, no-break spaces), and in the format of a whole or decimal number (`1`, `01`, `1.0`).
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(letter for letter in text if unicodedata.category(letter) != _FORMAT)
        text = unicodedata.normalize("NFC", text.casefold())
    plain = " ".join(text.lower().split())
    plain = plain.rstrip(". ") or plain
    number = _NUMBER.fullmatch(plain)
    if number is None or not any(map(str.isdigit, plain)):
        return plain
    sign, whole, fraction = number[1], number[2] or "0", number[3]
    is_zero = whole == "0" and not fraction
    return f"{'-' if sign == '-' and not is_zero else ''}{whole}{'.' + fraction if fraction else ''}"


READERS: dict[Writing, Callable[[str], str]] = {
    "exact": lambda text: text,
    "trimmed": str.strip,
    "folded": folded,
}
"""Each returns the text that is compared in place of a word."""
