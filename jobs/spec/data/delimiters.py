"""Divides lines of text into fields, and detects the delimiter between them."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

from jobs.spec.data.gap_words import is_gap
from jobs.spec.data.text_headers import is_number

Delimiter = Literal[",", ";", "\t", "|", " ", ":", "^", "~", "\x01", "::", "||"]
DELIMITERS: tuple[Delimiter, ...] = (",", ";", "\t", "|")
"""Delimiters that are tried first."""
RARE_DELIMITERS: tuple[Delimiter, ...] = ("::", "||", "^", "~", "\x01", " ")
"""Delimiters that are tried if none of the first ones divides the rows. A colon is not: times have it."""
BLANK: Delimiter = " "
"""Any number of blanks and tabs between two fields."""
ROWS = 50
"""Rows from which a dialect is detected."""
MOST_TITLES = 30
"""Rows above the header that may be titles."""
MOSTLY = 0.9
"""Share of the rows that a rare delimiter divides alike."""
_BLANKS = " \t\r\n"
_STAND_IN = "\x1f"
"""Replaces a delimiter of two signs: the separator of units in ASCII, which texts do not have."""


class Row(NamedTuple):
    """A row, and how many lines of the file precede it."""

    line: int
    fields: list[str]


def delimiter_of(text: str) -> Delimiter:
    """Return the delimiter that divides most rows into equally many fields, more than one."""
    best, most = DELIMITERS[0], (0.0, 0)
    for delimiter in DELIMITERS:
        share, width = evenness(text, delimiter)
        if width > 1 and (share, width) > most:
            best, most = delimiter, (share, width)
    if most[0] >= 1 / 2:
        return BLANK if _is_divided_by_blanks(text, best) else best
    for delimiter in RARE_DELIMITERS:
        share, width = evenness(text, delimiter)
        if width > 1 and share >= MOSTLY and (delimiter != BLANK or _has_numbers(text)):
            return delimiter
    return best


def evenness(text: str, delimiter: Delimiter) -> tuple[float, int]:
    """Return the share of the rows that have the most usual number of fields, and that number."""
    widths = Counter(len(row.fields) for row in parsed(text, delimiter))
    if not widths:
        return 0.0, 0
    width, rows = widths.most_common(1)[0]
    if delimiter == BLANK and widths.get(width - 1) == 1:
        # A header without a name for the labels of the rows.
        rows += 1
    return rows / widths.total(), width


def _is_divided_by_blanks(text: str, delimiter: Delimiter) -> bool:
    """Return whether blanks divide all rows alike, and a delimiter leaves several numbers in one field: it is
    a decimal comma, or a tab before the last field.
    """
    widths = {len(row.fields) for row in parsed(text, BLANK)}
    # Blanks between quotes divide nothing.
    if len(widths) != 1 or widths == {1}:
        return False
    bodies = [row.fields for row in parsed(text, delimiter)][1:]
    numbers = ([field.split() for field in fields] for fields in bodies)
    return bool(bodies) and all(
        any(len(field) > 1 and all(map(is_number, field)) for field in fields) for fields in numbers
    )


def _has_numbers(text: str) -> bool:
    """Return whether some column between blanks has numbers below its first row, as sentences do not."""
    rows = [row.fields for row in parsed(text, BLANK)]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    even = [row for row in rows if len(row) == width]
    body = even[1:] or even
    # A title and the header below it have none.
    return any(
        sum(is_number(row[column]) or is_gap(row[column]) for row in body) > len(body) / 2
        for column in range(len(body[0]))
    )


def parsed(text: str, delimiter: Delimiter, first: int = 0, count: int = ROWS + MOST_TITLES) -> Iterator[Row]:
    """Yield a text's first rows, without empty ones.

    Args:
        text: their lines.
        delimiter: between their fields.
        first: how many lines precede the text.
        count: at most so many rows.
    """
    line = 0
    reader = FieldReader(io.StringIO(text, newline=""), delimiter)
    try:
        for fields in reader:
            if fields:
                yield Row(first + line, [field.strip() for field in fields])
                count -= 1
            if not count:
                return
            line = reader.line_num
    # A quote that never ends makes a field longer than the reader's limit.
    except csv.Error:
        return


class FieldReader(Iterator[list[str]]):
    """Yields the fields of each row in lines, as `csv.reader` does, also between blanks and two signs."""

    def __init__(self, lines: Iterator[str] | io.TextIOBase, delimiter: str) -> None:
        self._double = delimiter if len(delimiter) > 1 else ""
        prepared: Iterator[str] = iter(lines)
        if delimiter == BLANK:
            prepared = (f"{line.strip(_BLANKS)}\n".replace("\t", " ") for line in lines)
        elif self._double:
            prepared = (line.replace(delimiter, _STAND_IN) for line in lines)
        self._reader = csv.reader(
            prepared, delimiter=_STAND_IN if self._double else delimiter, skipinitialspace=True
        )

    def __next__(self) -> list[str]:
        """Return the next row."""
        return next(self._reader)

    @property
    def line_num(self) -> int:
        """How many lines have been read."""
        return self._reader.line_num
