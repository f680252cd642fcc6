"""Recognizes codes of several parts, such as telephone numbers, card numbers and IBANs."""

import re
from collections import Counter
from collections.abc import Sequence

MOST_FORMS = 4
"""So many forms of digits and letters have nearly all codes of a column; numbers in lists have more."""
NEARLY_ALL = 0.9
FEWEST_DIGITS = 4
MOST_CHARACTERS = 40
TELEPHONE_NUMBERS = "telephone numbers"
_TELEPHONE_DIGITS = range(7, 16)
_TELEPHONE = re.compile(r"[+(0][0-9() /.-]*( ?(x|ext\.?) ?[0-9]{1,5})?")
_CODE = re.compile(r"[A-Z0-9+()/.#_ -]+")
_DATE = re.compile(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}.*")
_TO_NINE = str.maketrans("123456780", "9" * 9)


def are_telephone_numbers(texts: Sequence[str]) -> bool:
    """Return whether nearly all texts are telephone numbers with an area code."""
    fitting = sum(map(_is_telephone_number, texts))
    return bool(texts) and fitting >= NEARLY_ALL * len(texts)


def _is_telephone_number(text: str) -> bool:
    text = text.strip()
    if _TELEPHONE.fullmatch(text) is None or _DATE.fullmatch(text) is not None:
        return False
    groups = re.findall("[0-9]+", text)
    # A single group may be a number with a zero before it, and 0 1 1 0 are flags.
    are_long = all(len(group) > 1 for group in groups[1:])
    return len(groups) > 1 and are_long and len("".join(groups)) in _TELEPHONE_DIGITS


def form_of_codes(texts: Sequence[str]) -> str | None:
    """Return what texts of several words are if they are codes; None for others."""
    if are_telephone_numbers(texts):
        return TELEPHONE_NUMBERS
    codes = [text for text in texts if _is_code(text)]
    if not codes or len(codes) < NEARLY_ALL * len(texts):
        return None
    forms = Counter(re.sub("[A-Z]", "A", code.translate(_TO_NINE)) for code in codes)
    common = sum(count for _, count in forms.most_common(MOST_FORMS))
    return f"codes such as {codes[0]!r}" if common >= NEARLY_ALL * len(codes) else None


def _is_code(text: str) -> bool:
    if len(text) > MOST_CHARACTERS or _CODE.fullmatch(text) is None:
        return False
    return sum(map(str.isdigit, text)) >= FEWEST_DIGITS and _DATE.fullmatch(text) is None
