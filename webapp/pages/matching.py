"""Compares the text of a search with names."""


def matches(text: str, name: str, also: str = "") -> bool:
    """Return whether each word of `text` begins a word of the name, or of the other words for it.

    >>> matches("upload data", "Upload a data set"), matches("ten", "Content")
    (True, False)
    """
    words = f"{name} {also}".casefold().replace("-", " ").replace("/", " ").split()
    wanted = text.casefold().replace("-", " ").split()
    return bool(wanted) and all(any(word.strip("`(“\"'").startswith(part) for word in words) for part in wanted)
