"""Declares how a table is written as text, and detects it from a file's first bytes.

Only the standard library is used: the web server shows a detected dialect while a person chooses the file,
and a worker detects it again when it reads the whole file.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.gap_words import is_gap
from jobs.spec.data.images import ImageOptions

Delimiter = Literal[",", ";", "\t", "|"]
Encoding = Literal["utf-8", "utf-16", "latin-1"]
Decimal = Literal[".", ","]
DELIMITERS: tuple[Delimiter, ...] = (",", ";", "\t", "|")
CODECS: dict[Encoding, str] = {
    "utf-8": "utf-8-sig",
    "utf-16": "utf-16",
    # What spreadsheets write as Latin-1 is Windows-1252, which has the euro sign.
    "latin-1": "cp1252",
}
"""Python's codecs. The one for UTF-8 skips a byte order mark."""
ROWS = 50
"""Rows from which a dialect is detected."""
SAMPLE_BYTES = 64 << 10
"""Bytes from which a dialect is detected."""
_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}([.,]\d{3})+)([.,]\d+)?([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*(\.\d{3})*,\d+([eE][+-]?\d+)?( ?%)?")
_DECIMAL_POINT = re.compile(r"[+-]?\d*(,\d{3})*\.\d+([eE][+-]?\d+)?( ?%)?")
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
"""Numbers such as 1.234, whose sign may also divide thousands."""


class Dialect(Frozen):
    """How the rows of a file are written."""

    delimiter: Delimiter = Field(default=",", description="between the fields of a row")
    encoding: Encoding = "utf-8"
    decimal: Decimal = Field(default=".", description="before the decimals of a number")
    header: bool = Field(default=True, description="whether the first row has the names of the columns")


class DialectRequest(Frozen):
    """The parts of a dialect that a person knows; the others are detected."""

    delimiter: Delimiter | None = None
    encoding: Encoding | None = None
    decimal: Decimal | None = None
    header: bool | None = None


class ReadOptions(Frozen):
    """How a person wants a file to be read."""

    dialect: DialectRequest = DialectRequest()
    max_bad_share: float = Field(
        default=0.0, ge=0, lt=1, description="share of the rows that may be left out because they are damaged"
    )
    images: ImageOptions = Field(
        default=ImageOptions(),
        exclude_if=lambda options: options == ImageOptions(),
        description="the size of images",
    )


class Sample(NamedTuple):
    """A detected dialect and the rows from which it was detected, the header included."""

    dialect: Dialect
    rows: list[list[str]]


def detect_dialect(start: bytes, *, is_all: bool, request: DialectRequest | None = None) -> Sample:
    """Detect a file's dialect.

    Args:
        start: its first bytes.
        is_all: whether these are all bytes of the file.
        request: the parts that are known.
    """
    request = request or DialectRequest()
    encoding = request.encoding or encoding_of(start, is_all=is_all)
    text = decode_start(start, encoding)
    if not is_all:
        # The last row may be incomplete.
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    delimiter = request.delimiter or _delimiter_of(text)
    rows = rows_of(text, delimiter)
    decimal = request.decimal or _decimal_of(rows, delimiter)
    header = request.header if request.header is not None else _has_header(rows)
    return Sample(Dialect(delimiter=delimiter, encoding=encoding, decimal=decimal, header=header), rows)


def encoding_of(start: bytes, *, is_all: bool) -> Encoding:
    """Detect a text's encoding: by its byte order mark, else UTF-8 if it is valid, else Latin-1."""
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return encoding
    try:
        # Incremental, since the last character of a part may be incomplete.
        codecs.getincrementaldecoder("utf-8")().decode(start, final=is_all)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def decode_start(start: bytes, encoding: Encoding) -> str:
    """Decode a file's first bytes, without a byte order mark."""
    codec = CODECS[encoding]
    if encoding == "utf-16" and not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        # Its decoder raises an error without the mark. Who chose it by mistake sees wrong characters.
        codec = "utf-16-le"
    return codecs.getincrementaldecoder(codec)(errors="replace").decode(start)


def rows_of(text: str, delimiter: str, count: int = ROWS) -> list[list[str]]:
    """Return a text's first rows, without empty ones."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True):
            if row:
                rows.append([field.strip() for field in row])
            if len(rows) == count:
                break
    # A quote that never ends makes a field longer than the reader's limit.
    except csv.Error:
        pass
    return rows


def _delimiter_of(text: str) -> Delimiter:
    """Return the delimiter that divides most rows into equally many fields, more than one."""
    best, most = DELIMITERS[0], (0.0, 0)
    for delimiter in DELIMITERS:
        widths = Counter(len(row) for row in rows_of(text, delimiter))
        if not widths:
            continue
        width, rows = widths.most_common(1)[0]
        score = (rows / widths.total(), width)
        if width > 1 and score > most:
            best, most = delimiter, score
    return best


def _decimal_of(rows: Sequence[Sequence[str]], delimiter: str) -> Decimal:
    """Return the decimal sign that most numbers have; a comma only where it does not divide fields.

    Numbers that may have a thousands separator decide only where there are no others: one column with 1.234
    would otherwise outvote a column with 12,5 and gaps.
    """
    if delimiter == ",":
        return "."
    fields = [field for row in rows for field in row]
    clear = [field for field in fields if not _MAYBE_THOUSANDS.fullmatch(field)]
    for candidates in (clear, fields):
        commas = sum(_DECIMAL_COMMA.fullmatch(field) is not None for field in candidates)
        points = sum(_DECIMAL_POINT.fullmatch(field) is not None for field in candidates)
        if commas or points:
            return "," if commas > points else "."
    return "."


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has names: some numeric column does not begin with a number.

    A table without numeric columns has a header, since most files do.
    """
    if len(rows) < 2:
        return True
    first, others = rows[0], rows[1:]
    begins = [
        _is_number(first[column])
        for column in range(len(first))
        if not _is_gap_of_values(first[column], others)
        and _are_numbers([row[column] for row in others if column < len(row)])
    ]
    return not begins or not all(begins)


def _is_gap_of_values(field: str, others: Sequence[Sequence[str]]) -> bool:
    """Return whether a field in the first row marks a missing value, such as "k.A.".

    A word with letters only that is nowhere else may be a name: sodium is Na.
    """
    if not field or not is_gap(field):
        return False
    return not field.isalpha() or any(field in row for row in others)


def _is_number(field: str) -> bool:
    return _NUMBER.fullmatch(field) is not None


def _are_numbers(fields: Sequence[str]) -> bool:
    """Return whether all fields with a value, of which there are some, are numbers."""
    values = [field for field in fields if not is_gap(field)]
    return bool(values) and all(map(_is_number, values))
