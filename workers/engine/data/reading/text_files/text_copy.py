"""Copies the rows of a text file, with empty lines in place of titles, comments and notes."""

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.spec.data.delimiters import BLANK, FieldReader
from jobs.spec.data.dialect import SAMPLE_BYTES, Dialect
from jobs.spec.data.encodings import ENCODING_LABELS, codec_of

SHOWN_LINES = 5
SHOWN_CHARACTERS = 60


class Copying:
    """Yields the lines of a file, empty ones for those that are no rows, and counts the latter."""

    def __init__(self, path: Path, dialect: Dialect, width: int, footer: int) -> None:
        self._path, self._dialect, self._width, self._footer = path, dialect, width, footer
        self._left_out: list[str] = []
        self._header: list[str] = []
        self._zeros = self._replaced = self._count = 0

    def lines(self) -> Iterator[str]:
        """Yield the lines."""
        waiting: deque[str] = deque()
        for line in self._rows():
            waiting.append(line)
            if len(waiting) > self._footer:
                yield waiting.popleft()
        for line in waiting:
            self._leave_out(line)
            yield "\n"

    def _rows(self) -> Iterator[str]:
        with self._path.open("rb") as file:
            codec = codec_of(self._dialect.encoding, file.read(SAMPLE_BYTES))
        is_quoted, header_rows = False, 0
        with self._path.open(newline="", encoding=codec, errors="replace") as file:
            for number, line in enumerate(file):
                if "\0" in line:
                    self._zeros += line.count("\0")
                    line = line.replace("\0", "")
                self._replaced += line.count("\ufffd")
                is_above = number < self._dialect.skip_lines
                # The header itself may begin with the sign.
                is_below = number > self._dialect.skip_lines and not is_quoted
                if is_above or (is_below and self._is_comment(line)):
                    self._leave_out(line)
                    yield "\n"
                    continue
                if header_rows < self._dialect.header_rows and line.strip():
                    header_rows += 1
                    self._header.append(line.strip())
                    if header_rows > 1:
                        yield "\n"
                        continue
                is_quoted ^= line.count('"') % 2 == 1
                yield line

    def _is_comment(self, line: str) -> bool:
        """Return whether a line is a comment, and no row whose first value begins with the sign."""
        if not self._dialect.comments or not line.startswith(self._dialect.comment_sign):
            return False
        delimiter = self._dialect.delimiter
        return delimiter == BLANK or len(next(FieldReader(iter([line]), delimiter), [])) != self._width

    def _leave_out(self, line: str) -> None:
        if text := line.strip().strip(self._dialect.delimiter):
            self._count += 1
            if len(self._left_out) < SHOWN_LINES:
                self._left_out.append(text)

    def findings(self, names: Sequence[str]) -> list[str]:
        """Return sentences on the header, on the lines left out and on the characters replaced.

        Args:
            names: those of the columns, before equal ones get a number.
        """
        findings = self._findings_on_header(names)
        if self._count:
            more = (
                f" and {self._count - len(self._left_out):,} more"
                if self._count > len(self._left_out)
                else ""
            )
            many = (
                "A line that is no row was"
                if self._count == 1
                else f"{self._count:,} lines that are no rows were"
            )
            findings.append(f"{many} left out: {', '.join(map(shown, self._left_out))}{more}.")
        if self._zeros:
            findings.append(f"{self._zeros:,} zero bytes were removed from the text.")
        if self._replaced:
            label = ENCODING_LABELS[self._dialect.encoding]
            one = self._replaced == 1
            many = "One character does" if one else f"{self._replaced:,} characters do"
            findings.append(
                f"{many} not exist in {label}, and � is in {'its' if one else 'their'} place. If that is the "
                "wrong encoding, choose another one."
            )
        return findings

    def _findings_on_header(self, names: Sequence[str]) -> list[str]:
        first, *below = self._header
        if not below:
            return []
        fields = next(FieldReader(iter([first]), self._dialect.delimiter), [])
        pairs = zip(names, fields, strict=False)
        joined = next((name for name, field in pairs if field and name.startswith(f"{field.strip()}_")), None)
        if joined is None:
            verb = "is" if len(below) == 1 else "are"
            about = f"{', '.join(map(shown, below))} below the names {verb} left out"
        else:
            about = f"their names are joined, as in {joined!r}"
        return [
            f"The header has {len(below) + 1} rows; {about}. If the lower ones are values, read the file "
            "again with 1 in Rows of the header (header_rows)."
        ]


def shown(text: str) -> str:
    """Return a text for a message, cut if it is long."""
    return repr(text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…")
