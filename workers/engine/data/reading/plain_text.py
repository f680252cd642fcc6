"""Prepares text tables for the readers: a file in an unusual form is copied as UTF-8, rows alone.

In the copy, the lines that are left out are empty, so that messages have the lines of the file itself.
"""

import codecs
import csv
import io
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from jobs.spec.data.delimiters import Delimiter, FieldReader
from jobs.spec.data.dialect import (
    SAMPLE_BYTES,
    Dialect,
    DialectRequest,
    decode_start,
    detect_dialect,
)
from jobs.spec.data.encodings import (
    CODECS,
    DECIDING_BYTES,
    ENCODING_LABELS,
    PLAIN,
    Encoding,
    codec_of,
    encoding_of,
    encoding_of_lines,
    is_text,
)
from jobs.spec.data.file_limits import FileLimits
from workers.engine.data.expansion import CHUNK_BYTES, check_expanded
from workers.engine.data.reading.header import Header, read_header
from workers.engine.data.reading.text_files.fixed_width import check_fixed_width
from workers.engine.data.reading.text_files.footers import FOOTER_LINES, Footer, find_footer
from workers.engine.data.reading.text_files.foreign_quotes import check_quotes, findings_on_quotes
from workers.engine.data.reading.text_files.text_copy import Copying, shown
from workers.engine.errors import BadData, DamagedFile

SAFE_DELIMITERS = frozenset({",", ";", "\t", "|", ":", "^", "~", "\x01"})
"""Delimiters that the readers know. Fields between others are divided by tabs in the copy."""
TAIL_BYTES = 8 << 10
"""Bytes at the end of a file that may have a footer."""
CHECKED_BYTES = 16 << 20
"""Files up to this size are read to check a total at their end."""


@dataclass(frozen=True)
class PlainText:
    """A text table that the readers can read.

    Attributes:
        path: the file, or its copy.
        dialect: how the rows in `path` are written.
        shown: how those of the file itself are.
        rows: the first rows; the header first, if there is one.
        start: the first text in `path`.
        header: the column names.
        findings: sentences on how the file was understood.
    """

    path: Path
    dialect: Dialect
    shown: Dialect
    rows: list[list[str]]
    start: str
    header: Header
    findings: tuple[str, ...] = ()


def plain_text(
    path: Path, request: DialectRequest, limits: FileLimits, folder: Path, *, whole: bool = True
) -> PlainText:
    """Return a file's text as the readers need it.

    Args:
        path: the file.
        request: the known parts of its dialect.
        limits: the size limits, also for a copy.
        folder: for a copy.
        whole: whether the encoding must fit the whole file, and not its first bytes alone.

    Raises:
        BadData: it has no rows, or quotes that are not known.
        DamagedFile: it is no text.
    """
    with path.open("rb") as file:
        start = file.read(SAMPLE_BYTES)
    if not is_text(start):
        raise DamagedFile(
            f"this file is damaged: {path.name} is not a readable CSV file: it contains no text"
        )
    encoding, is_damaged = request.encoding or encoding_of(start, is_all=False), False
    if request.encoding is None and encoding == "utf-8" and (whole or not _fits(start)):
        encoding, is_damaged = _encoding(path)
    dialect, rows = _detected(path, start, request, encoding)
    check_fixed_width(_complete_lines(start, path, dialect), dialect, rows, path.name)
    check_quotes(path, dialect.delimiter, codec_of(encoding, start) if encoding == "utf-16" else None)
    zeros = _has_zeros(path) if encoding != "utf-16" else False
    footer = _footer_of(path, dialect, start, rows)
    if not (zeros or is_damaged or footer.lines) and _is_plain(dialect, start):
        header = _header(rows, dialect, path)
        findings = (*footer.findings, *findings_on_quotes(rows, dialect), *_guess(path, dialect, request))
        return PlainText(path, dialect, dialect, rows, decode_start(start, encoding), header, findings)
    if request.encoding is None and encoding == "utf-8" and not whole:
        dialect, rows = _detected(path, start, request, _encoding(path)[0])
    return _copied(path, dialect, rows, request, limits, folder, footer)


def _detected(
    path: Path, start: bytes, request: DialectRequest, encoding: Encoding
) -> tuple[Dialect, list[list[str]]]:
    with_encoding = request.model_copy(update={"encoding": encoding})
    return detect_dialect(start, is_all=path.stat().st_size <= len(start), request=with_encoding)


def _complete_lines(start: bytes, path: Path, dialect: Dialect) -> str:
    text = decode_start(start, dialect.encoding)
    return text if path.stat().st_size <= len(start) else text[: text.rfind("\n") + 1]


def _header(rows: list[list[str]], dialect: Dialect, path: Path) -> Header:
    if not rows:
        raise BadData(f"{path.name} has no rows")
    return read_header(rows, delimiter=dialect.delimiter, has_names=dialect.header)


def _is_plain(dialect: Dialect, start: bytes) -> bool:
    """Return whether the readers can read a file as it is."""
    return (
        dialect.skip_lines == 0
        and not dialect.comments
        and dialect.header_rows == 1
        and dialect.delimiter in SAFE_DELIMITERS
        and dialect.encoding in PLAIN
        and codec_of(dialect.encoding, start) == CODECS[dialect.encoding]
    )


def _fits(start: bytes) -> bool:
    """Return whether a file's first bytes are valid UTF-8; the last character may be incomplete."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True


def _encoding(path: Path) -> tuple[Encoding, bool]:
    """Return a whole file's encoding, and whether it is UTF-8 with some damaged characters.

    Its first bytes may be plain ASCII.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        try:
            while chunk := file.read(CHUNK_BYTES):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            file.seek(0)
            encoding = encoding_of_lines(_special_lines(file))
            return encoding, encoding == "utf-8"
    return "utf-8", False


def _special_lines(file: IO[bytes]) -> bytes:
    """Return the first lines that have other characters than those of ASCII."""
    lines, size = [], 0
    while size < DECIDING_BYTES and (line := file.readline(DECIDING_BYTES)):
        if not line.isascii():
            lines.append(line)
            size += len(line)
    return b"\n".join(lines)


def _has_zeros(path: Path) -> bool:
    if not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"\0") >= 0


def _guess(path: Path, dialect: Dialect, request: DialectRequest) -> tuple[str, ...]:
    """Return a finding that an encoding was guessed: no byte of most of them is wrong."""
    if request.encoding is not None or dialect.encoding in ("utf-8", "utf-16"):
        return ()
    with path.open("rb") as file:
        line = _special_lines(file).split(b"\n")[0]
    words = decode_start(line, dialect.encoding).split(dialect.delimiter)
    example = next((word.strip() for word in words if not word.isascii()), "")
    return (
        f"The file is not UTF-8. Its text was read as {ENCODING_LABELS[dialect.encoding]}, for example "
        f"{shown(example)}. If that looks wrong, choose another encoding.",
    )


def _footer_of(path: Path, dialect: Dialect, start: bytes, rows: list[list[str]]) -> Footer:
    """Return the lines at the end of a file that are no rows."""
    size = path.stat().st_size
    if not rows or dialect.encoding == "utf-16":
        return Footer()
    with path.open("rb") as file:
        file.seek(max(size - TAIL_BYTES, 0))
        lines = _lines(file.read(), dialect, start)
    # The first one of a part may be incomplete.
    last = (lines if size <= TAIL_BYTES else lines[1:])[-FOOTER_LINES:]

    def complete() -> list[str]:
        return _lines(path.read_bytes(), dialect, start)[dialect.skip_lines :]

    return find_footer(last, rows, dialect.delimiter, complete if size <= CHECKED_BYTES else None)


def _lines(body: bytes, dialect: Dialect, start: bytes) -> list[str]:
    text = body.decode(codec_of(dialect.encoding, start), errors="replace").replace("\0", "")
    return list(io.StringIO(text, newline=""))


def _copied(
    path: Path,
    dialect: Dialect,
    rows: list[list[str]],
    request: DialectRequest,
    limits: FileLimits,
    folder: Path,
    footer: Footer,
) -> PlainText:
    """Return a copy as UTF-8, in which the lines that are no rows are empty."""
    copy = folder / "plain" / path.name
    copy.parent.mkdir(exist_ok=True)
    width = max((len(row) for row in rows), default=0)
    # A person who chose it means all lines with the sign.
    copying = Copying(path, dialect, 0 if request.comments else width, footer.lines)
    delimiter: Delimiter = dialect.delimiter if dialect.delimiter in SAFE_DELIMITERS else "\t"
    with copy.open("w", newline="", encoding="utf-8") as target:
        if delimiter == dialect.delimiter:
            for line in copying.lines():
                target.write(line)
        else:
            # A field may be as long as the file.
            csv.field_size_limit(max(path.stat().st_size, csv.field_size_limit()))
            writer = csv.writer(target, delimiter=delimiter, lineterminator="\n")
            writer.writerows(FieldReader(copying.lines(), dialect.delimiter))
        check_expanded(path.name, target.tell(), limits)
    plain = Dialect(delimiter=delimiter, decimal=dialect.decimal, header=dialect.header)
    with copy.open("rb") as file:
        start = decode_start(file.read(SAMPLE_BYTES), "utf-8")
    findings = (
        *copying.findings(rows[0] if rows else ()),
        *footer.findings,
        *findings_on_quotes(rows, dialect),
        *_guess(path, dialect, request),
    )
    return PlainText(copy, plain, dialect, rows, start, _header(rows, dialect, path), findings)
