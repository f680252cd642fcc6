"""The dialect's fields in upload forms, and the first rows read with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from jobs.spec.data.dialect import Dialect, DialectRequest, detect_dialect
from webapp.template_context import Context

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
    """A select in the form: the user's entry, and the detected value's label."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...]
    entry: str
    detected: str

    @property
    def pointer(self) -> str:
        return f"/dialect/{self.name}"


def dialect_fields(entries: Mapping[str, str], detected: Dialect | None = None) -> list[DialectField]:
    """Return the selects.

    Args:
        entries: the form's fields by name, with their prefix.
        detected: the detected dialect, if there is one.
    """
    return [
        DialectField(name, label, choices, entries.get(f"{PREFIX}{name}", ""), _label(name, detected))
        for name, (label, choices) in LABELS.items()
    ]


def _label(name: str, detected: Dialect | None) -> str:
    if detected is None:
        return ""
    value = getattr(detected, name)
    return dict(LABELS[name][1])[str(value).lower() if isinstance(value, bool) else value]


def read_dialect(entries: Mapping[str, str]) -> dict[str, str]:
    """Return the dialect entries that were chosen in a form, by name."""
    chosen = {name: entries.get(f"{PREFIX}{name}", "") for name in LABELS}
    return {name: value for name, value in chosen.items() if value}


@dataclass(frozen=True)
class SampleRows(Context):
    """A file's detected dialect and first rows."""

    dialect_fields: list[DialectField]
    names: list[str]
    rows: list[list[str]]
    more_columns: int
    uneven: int


def sample_context(
    start: bytes, *, is_all: bool, entries: Mapping[str, str], requested: DialectRequest
) -> SampleRows:
    """Detect a file's dialect and return its first rows.

    Args:
        start: the file's first bytes.
        is_all: whether these are all bytes in the file.
        entries: the form's fields by name, with their prefix.
        requested: the validated entries.
    """
    dialect, rows = detect_dialect(start, is_all=is_all, request=requested)
    names = rows[0] if dialect.header and rows else []
    body = rows[1:] if dialect.header else rows
    return SampleRows(
        dialect_fields=dialect_fields(entries, dialect),
        names=names[:SHOWN_COLUMNS],
        rows=[row[:SHOWN_COLUMNS] for row in body[:SHOWN_ROWS]],
        more_columns=max(max(map(len, rows), default=0) - SHOWN_COLUMNS, 0),
        uneven=sum(len(row) != len(rows[0]) for row in rows),
    )
