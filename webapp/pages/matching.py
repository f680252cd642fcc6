"""Compares the text of a search with names."""

import re

WORD = re.compile(r"\w+")


def matches(text: str, name: str, also: str = "") -> bool:
    """Return whether each word of `text` begins a word of the name, or of the other words for it.

    >>> matches("upload data", "Upload a data set"), matches("ten", "Content")
    (True, False)
    """
    words = WORD.findall(f"{name} {also}".casefold())
    wanted = WORD.findall(text.casefold())
    return bool(wanted) and all(any(word.startswith(part) for word in words) for part in wanted)
