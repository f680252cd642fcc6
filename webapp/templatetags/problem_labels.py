"""Names the field of a problem on pages, which have labels where the REST interface has JSON pointers."""

LABELS = {
    "/url": "Address",
    "/max_bad_share": "Damaged rows",
    "/rows_without_target": "Leave out rows without a target",
}
"""The labels of fields whose names are other words; the experiment form adds its own."""
NAMED = ("args", "env", "columns", "gap_words", "class_weights", "hyperparameters", "scores")
"""Parts of a body whose keys are names that users chose."""


def label_of(pointer: str) -> str:
    """Return the label of the field at a pointer into a body; the words of the pointer if no page has one.

    >>> label_of("/file"), label_of("/columns/unit_price/type")
    ('File', 'Columns, unit_price, type')
    """
    place = pointer.removeprefix("/spec")
    return LABELS.get(pointer) or _in_words(place or pointer)


def _in_words(pointer: str) -> str:
    words: list[str] = []
    above = ""
    for part in pointer.strip("/").split("/"):
        # A JSON pointer escapes slash and tilde.
        name = part.replace("~1", "/").replace("~0", "~")
        if above in NAMED:
            words.append(name)
        elif name.isdecimal():
            words.append(f"row {int(name) + 1}")
        else:
            words.append(name.replace("_", " "))
        above = part
    text = ", ".join(words)
    return text[:1].upper() + text[1:]
