"""Writes numbers and dates with the digits and signs that programs use, whatever script they were written in.

Files and requests are read by the same function.
"""

import unicodedata

SPACES = "\u00a0\u2002\u2007\u2008\u2009\u200a\u202f\u3000"
"""Spaces of fixed width, which mark thousands in typeset numbers."""
MINUS_SIGNS = "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
APOSTROPHES = "\u2019\u02bc\uff07"
_WIDE = range(0xFF01, 0xFF5F)
"""Letters, digits and signs as wide as Chinese characters, in the order of ASCII."""
_SIGNS = {"\u066a": "%", "\u066b": ".", "\u066c": ","}
"""The percent sign, the decimal sign and the mark of thousands of Arabic."""


class _PlainCharacters(dict[int, str | None]):
    """The plain text of each character, found when it is first met; None for one without a width."""

    def __missing__(self, code: int) -> str | None:
        letter = chr(code)
        # Such as a mark of direction, or a byte order mark inside of a text.
        is_unseen = unicodedata.category(letter) == "Cf"
        plain = None if is_unseen else str(unicodedata.decimal(letter, letter))
        self[code] = plain
        return plain


_PLAIN = _PlainCharacters(
    {
        **{code: chr(code - 0xFEE0) for code in _WIDE},
        **{ord(sign): plain for sign, plain in _SIGNS.items()},
        **dict.fromkeys(map(ord, SPACES), " "),
        **dict.fromkeys(map(ord, MINUS_SIGNS), "-"),
        **dict.fromkeys(map(ord, APOSTROPHES), "'"),
    }
)


def plain_characters(text: str) -> str:
    """Return a text without blanks around it, with plain digits, signs and blanks.

    Characters without a width are left out.
    """
    text = text.strip()
    return text if text.isascii() else text.translate(_PLAIN).strip()
