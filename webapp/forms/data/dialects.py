"""The fields of a dialect in the forms of uploads, and the first rows of a file that is read with it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from jobs.spec.data.dialect import Dialect, DialectRequest, detect_dialect

BAD_ROWS_HINT = "The share that may be left out, such as 0.01. They are listed in a file."
SHOWN_ROWS = 8
SHOWN_COLUMNS = 50
"""A sample of 64 KiB may have as many fields, and each is an element of the page."""
PREFIX = "dialect."
LABELS = {
    "delimiter": ("Delimiter", ((",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "vertical bar"))),
    "encoding": ("Encoding", (("utf-8", "UTF-8"), ("latin-1", "Latin-1"), ("utf-16", "UTF-16"))),
    "decimal": ("Decimal sign", ((".", "point"), (",", "comma"))),
    "header": ("First row", (("true", "names"), ("false", "values"))),
}
"""Label and choices by field. In requests, `header` is the text of a JSON boolean."""


class DialectField(NamedTuple):
    """A select of the form: the value that was given, and the label of the one that was detected."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...]
    given: str
    found: str

    @property
    def pointer(self) -> str:
        return f"/dialect/{self.name}"


def fields(given: Mapping[str, str], found: Dialect | None = None) -> list[DialectField]:
    """Return the selects.

    Args:
        given: the fields of the form by name, with their prefix.
        found: the dialect that was detected, if there is one.
    """
    return [
        DialectField(name, label, choices, given.get(f"{PREFIX}{name}", ""), _label(name, found))
        for name, (label, choices) in LABELS.items()
    ]


def _label(name: str, found: Dialect | None) -> str:
    if found is None:
        return ""
    value = getattr(found, name)
    return dict(LABELS[name][1])[str(value).lower() if isinstance(value, bool) else value]


def read(given: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of a dialect that were chosen in a form, by name."""
    chosen = {name: given.get(f"{PREFIX}{name}", "") for name in LABELS}
    return {name: value for name, value in chosen.items() if value}


def sample_context(
    start: bytes, *, is_all: bool, given: Mapping[str, str], known: DialectRequest
) -> dict[str, Any]:
    """Return the context of `sample.html`: the detected dialect and the first rows.

    Args:
        start: the first bytes of the file.
        is_all: whether these are all bytes of the file.
        given: the fields of the form by name, with their prefix.
        known: the same, validated.
    """
    dialect, rows = detect_dialect(start, is_all=is_all, request=known)
    names = rows[0] if dialect.header and rows else []
    body = rows[1:] if dialect.header else rows
    return {
        "dialect_fields": fields(given, dialect),
        "names": names[:SHOWN_COLUMNS],
        "rows": [row[:SHOWN_COLUMNS] for row in body[:SHOWN_ROWS]],
        "more_columns": max(max(map(len, rows), default=0) - SHOWN_COLUMNS, 0),
        "uneven": sum(len(row) != len(rows[0]) for row in rows),
    }
