"""The dialect's fields in upload forms, and the first rows read with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jobs.spec.data.dialect import Dialect, DialectRequest, detect_dialect
from jobs.spec.data.encodings import ENCODING_LABELS
from webapp.template_context import Context

BAD_ROWS_HINT = "The share that may be left out, such as 0.01. They are listed in a file."
SHOWN_ROWS = 8
SHOWN_COLUMNS = 50
"""A sample of 64 KiB may have as many fields, and each is an element of the page."""
PREFIX = "dialect."
LABELS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "delimiter": (
        "Delimiter",
        (
            (",", "comma"),
            (";", "semicolon"),
            ("\t", "tab"),
            ("|", "vertical bar"),
            (" ", "blanks"),
            (":", "colon"),
            ("::", "two colons"),
            ("||", "two bars"),
            ("^", "caret"),
            ("~", "tilde"),
            ("\x01", "control sign 1"),
        ),
    ),
    "encoding": ("Encoding", tuple(ENCODING_LABELS.items())),
    "decimal": ("Decimal sign", ((".", "point"), (",", "comma"))),
    "header": ("First row", (("true", "names"), ("false", "values"))),
    "header_rows": ("Rows of the header", ()),
    "comments": ("Lines with # or %", (("true", "left out"), ("false", "rows"))),
    "skip_lines": ("Lines above the table", ()),
    "sheet": ("Sheet", ()),
}
"""Label and choices by field; without choices it is an entry. In requests, truth values are texts of JSON."""
USUAL = {"header_rows": "1", "comments": "rows", "skip_lines": "0"}
"""What most files have, which is not worth a line."""
OF_TEXT = tuple(name for name in LABELS if name != "sheet")
OF_WORKBOOKS = ("header", "header_rows", "comments", "skip_lines", "sheet")
"""The fields that a file of text has, and a workbook."""


class DialectField(NamedTuple):
    """A field in the form: the user's entry, and the detected value's label."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...]
    entry: str
    detected: str

    @property
    def pointer(self) -> str:
        return f"/dialect/{self.name}"

    @property
    def is_usual(self) -> bool:
        return self.detected == USUAL.get(self.name)


def dialect_fields(
    entries: Mapping[str, str],
    detected: Dialect | None = None,
    *,
    sheet: str | None = None,
    names: Sequence[str] = tuple(LABELS),
) -> list[DialectField]:
    """Return the fields.

    Args:
        entries: the form's fields by name, with their prefix.
        detected: the detected dialect, if there is one.
        sheet: the sheet of a workbook that was read.
        names: the fields that are shown.
    """
    values = {**dict(detected or ()), **({"sheet": sheet} if sheet else {})}
    return [
        DialectField(name, *LABELS[name], entries.get(f"{PREFIX}{name}", ""), _label(name, values.get(name)))
        for name in names
    ]


def _label(name: str, value: object) -> str:
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return dict(LABELS[name][1]).get(text, text)


def read_dialect(entries: Mapping[str, str]) -> dict[str, str]:
    """Return the dialect entries that were chosen in a form, by name."""
    chosen = {name: entries.get(f"{PREFIX}{name}", "") for name in LABELS}
    return {name: value for name, value in chosen.items() if value}


@dataclass(frozen=True)
class SampleRows(Context):
    """A file's detected dialect and first rows; a packed file has neither before it is read.

    Attributes:
        is_packed: whether its bytes are no text.
    """

    is_packed: bool
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
    if entries.get("packed") == "1":
        return SampleRows(True, dialect_fields(entries), [], [], 0, 0)
    dialect, rows = detect_dialect(start, is_all=is_all, request=requested)
    names = rows[0] if dialect.header and rows else []
    body = rows[1:] if dialect.header else rows
    return SampleRows(
        is_packed=False,
        dialect_fields=dialect_fields(entries, dialect, names=OF_TEXT),
        names=names[:SHOWN_COLUMNS],
        rows=[row[:SHOWN_COLUMNS] for row in body[:SHOWN_ROWS]],
        more_columns=max(max(map(len, rows), default=0) - SHOWN_COLUMNS, 0),
        uneven=sum(len(row) != len(rows[0]) for row in rows),
    )
