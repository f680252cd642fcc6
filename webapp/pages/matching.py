"""Compares the text of a search with names and texts."""

import re

WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return WORD.findall(text.casefold())


def matches(text: str, name: str, also: str = "") -> bool:
    """Return whether each word of `text` begins a word of the name, or of the other words for it.

    >>> matches("upload data", "Upload a data set"), matches("ten", "Content")
    (True, False)
    """
    words = words_of(f"{name} {also}")
    wanted = words_of(text)
    return bool(wanted) and all(any(word.startswith(part) for word in words) for part in wanted)


def begins_a_word(part: str, text: str) -> bool:
    """Return whether a word of `text` begins with `part`; both are in lower case.

    >>> begins_a_word("rol", "the roles"), begins_a_word("les", "the roles")
    (True, False)
    """
    return re.search(rf"\b{re.escape(part)}", text) is not None
