"""Declares how a table is written as text, and detects it from a file's first bytes.

Nothing of the engine is used: the web server shows a detected dialect while a person chooses the file,
and a worker detects it again when it reads the whole file.
"""

import codecs
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.delimiters import ROWS, Delimiter
from jobs.spec.data.encodings import Encoding, codec_of, encoding_of
from jobs.spec.data.header_rows import MOST_HEADER_ROWS
from jobs.spec.data.images import ImageOptions
from jobs.spec.data.text_headers import has_header
from jobs.spec.data.text_rows import USUAL_SIGN, CommentSign, Rows, find_rows

Decimal = Literal[".", ","]
SAMPLE_BYTES = 64 << 10
"""Bytes from which a dialect is detected."""
MAX_SKIPPED = 10_000
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
    skip_lines: int = Field(
        default=0,
        exclude_if=lambda lines: lines == 0,
        description="lines above the header that are no part of the table",
    )
    comments: bool = Field(
        default=False,
        exclude_if=lambda comments: not comments,
        description="whether lines that begin with comment_sign are left out",
    )
    comment_sign: CommentSign = Field(
        default=USUAL_SIGN,
        exclude_if=lambda sign: sign == USUAL_SIGN,
        description="the begin of comments",
    )
    header_rows: int = Field(
        default=1,
        exclude_if=lambda rows: rows == 1,
        description="rows of the header: names, and their units or further levels below",
    )


class DialectRequest(Frozen):
    """The parts of a dialect that a person knows; the others are detected."""

    delimiter: Delimiter | None = None
    encoding: Encoding | None = None
    decimal: Decimal | None = None
    header: bool | None = None
    skip_lines: int | None = Field(
        default=None, ge=0, le=MAX_SKIPPED, description="lines above the header that are no part of the table"
    )
    comments: bool | None = Field(
        default=None,
        description="whether lines that begin with # are left out; or with %, //, !, ; or -- if none does",
    )
    header_rows: int | None = Field(
        default=None,
        ge=1,
        le=MOST_HEADER_ROWS,
        description="rows of the header: names, and their units or further levels below",
    )
    sheet: str | None = Field(
        default=None, max_length=255, description="the sheet of a workbook that is read"
    )


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
    rows = first_rows(start, encoding, is_all=is_all, request=request)
    fields = rows.fields[:ROWS]
    dialect = Dialect(
        delimiter=rows.delimiter,
        encoding=encoding,
        decimal=request.decimal or _decimal_of(fields, rows.delimiter),
        header=_has_header(rows, request),
        skip_lines=rows.skipped,
        comments=rows.comments,
        comment_sign=rows.sign if rows.comments else USUAL_SIGN,
        header_rows=rows.header_rows,
    )
    return Sample(dialect, fields)


def _has_header(rows: Rows, request: DialectRequest) -> bool:
    if request.header is not None:
        return request.header
    return rows.commented_header or rows.header_rows > 1 or has_header(rows.fields[:ROWS])


def first_rows(start: bytes, encoding: Encoding, *, is_all: bool, request: DialectRequest) -> Rows:
    """Return the rows at a file's start; see `detect_dialect`."""
    # Programs that fill fields with zero bytes write them beside the text.
    text = decode_start(start, encoding).replace("\0", "")
    if not is_all:
        # The last row may be incomplete.
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    header_rows = 1 if request.header is False else request.header_rows
    return find_rows(text, request.delimiter, request.skip_lines, request.comments, header_rows)


def decode_start(start: bytes, encoding: Encoding) -> str:
    """Decode a file's first bytes, without a byte order mark."""
    return codecs.getincrementaldecoder(codec_of(encoding, start))(errors="replace").decode(start)


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
