"""Finds the rows of a table in a text file, below titles, between comments, with a stated delimiter."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from jobs.spec.data.gap_words import is_gap

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
"""Lines above the header that may be titles."""
COMMENT = "#"
MOSTLY = 0.9
"""Share of the rows that a rare delimiter divides alike."""
_NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}([.,]\d{3})+)([.,]\d+)?([eE][+-]?\d+)?")
_YEAR = re.compile(r"1[89]\d\d|20\d\d")
_STATED = re.compile(r'"?sep=(?P<delimiter>.)"?[\r\n]*', re.IGNORECASE)
"""The first line with which a program for spreadsheets learns the delimiter."""
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")


class Row(NamedTuple):
    """A row, and how many lines of the file precede it."""

    line: int
    fields: list[str]


class Rows(NamedTuple):
    """The first rows of a text file.

    Attributes:
        delimiter: between their fields.
        rows: without those that are no part of the table; the header first, if there is one.
        skipped: how many lines precede the first row: titles, comments, and empty lines between them.
        comments: whether lines that begin with # are comments.
        commented_header: whether the header itself begins with #.
    """

    delimiter: Delimiter
    rows: list[Row]
    skipped: int = 0
    comments: bool = False
    commented_header: bool = False

    @property
    def fields(self) -> list[list[str]]:
        """The fields of each row."""
        return [row.fields for row in self.rows]


def find_rows(
    text: str,
    delimiter: Delimiter | None = None,
    skipped: int | None = None,
    comments: bool | None = None,
) -> Rows:
    """Find the rows of a table in a file's first text.

    Args:
        text: complete lines.
        delimiter: between fields; detected if None.
        skipped: lines above the header; detected if None.
        comments: whether lines that begin with # are comments; detected if None.
    """
    stated = _STATED.match(text) if skipped is None else None
    first = 1 if stated else skipped or 0
    if stated and delimiter is None:
        delimiter = _delimiter(stated["delimiter"])
    lines = [match.group() for match in _LINES.finditer(text)][first:]
    signs = [line.startswith(COMMENT) for line in lines if line.strip()]
    # Values of a column may begin with the sign, such as colours: then most lines do.
    has_comments = any(signs) and (sum(signs) <= max(len(signs) / 2, 1) if comments is None else comments)
    if comments is None and has_comments:
        has_comments = _are_comments(lines)
    body = "".join("\n" if has_comments and line.startswith(COMMENT) else line for line in lines)
    delimiter = delimiter or delimiter_of(body)
    rows = list(_parsed(body, delimiter, first))
    found = Rows(delimiter, rows, first)
    if has_comments:
        found = _without_comments(found, lines, first)
    if skipped is not None or not found.rows:
        return found
    # Rows in the middle are wider than titles, and as wide as the header.
    return _without_titles(found)


def _are_comments(lines: Sequence[str]) -> bool:
    """Return whether lines with # are comments: they are above all others, or have another number of fields.

    The value of a first column may begin with the sign, such as "#1".
    """
    others = [line for line in lines if line.strip() and not line.startswith(COMMENT)]
    first = lines.index(others[0])
    among = [line for line in lines[first:] if line.startswith(COMMENT)]
    delimiter = delimiter_of("".join(others))
    width = _evenness("".join(others), delimiter)[1]
    return not any(len(row.fields) == width > 1 for row in _parsed("".join(among), delimiter))


def _delimiter(text: str) -> Delimiter | None:
    known: tuple[Delimiter, ...] = (*DELIMITERS, *RARE_DELIMITERS, ":")
    return next((delimiter for delimiter in known if delimiter == text), None)


def delimiter_of(text: str) -> Delimiter:
    """Return the delimiter that divides most rows into equally many fields, more than one."""
    best, most = DELIMITERS[0], (0.0, 0)
    for delimiter in DELIMITERS:
        share, width = _evenness(text, delimiter)
        if width > 1 and (share, width) > most:
            best, most = delimiter, (share, width)
    if most[0] >= 1 / 2:
        return BLANK if _is_divided_by_blanks(text, best) else best
    for delimiter in RARE_DELIMITERS:
        share, width = _evenness(text, delimiter)
        if width > 1 and share >= MOSTLY and (delimiter != BLANK or _has_numbers(text)):
            return delimiter
    return best


def _evenness(text: str, delimiter: Delimiter) -> tuple[float, int]:
    """Return the share of the rows that have the most usual number of fields, and that number."""
    widths = Counter(len(row.fields) for row in _parsed(text, delimiter))
    if not widths:
        return 0.0, 0
    width, rows = widths.most_common(1)[0]
    if delimiter == BLANK and widths.get(width - 1) == 1:
        # A header without a name for the labels of the rows.
        rows += 1
    return rows / widths.total(), width


def _is_divided_by_blanks(text: str, delimiter: str) -> bool:
    """Return whether blanks divide all rows alike, and a delimiter leaves several numbers in one field: it is
    a decimal comma, or a tab before the last field.
    """
    if len({len(row.fields) for row in _parsed(text, BLANK)}) != 1:
        return False
    bodies = [row.fields for row in _parsed(text, delimiter)][1:]
    numbers = ([field.split() for field in fields] for fields in bodies)
    return bool(bodies) and all(
        any(len(field) > 1 and all(map(is_number, field)) for field in fields) for fields in numbers
    )


def _has_numbers(text: str) -> bool:
    """Return whether some column between blanks has numbers below its first row, as sentences do not."""
    rows = [row.fields for row in _parsed(text, BLANK)]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    even = [row for row in rows if len(row) == width]
    body = even[1:] or even
    # A title and the header below it have none.
    return any(
        sum(is_number(row[column]) or is_gap(row[column]) for row in body) > len(body) / 2
        for column in range(len(body[0]))
    )


def _parsed(
    text: str, delimiter: Delimiter, first: int = 0, count: int = ROWS + MOST_TITLES
) -> Iterator[Row]:
    """Yield a text's first rows, without empty ones.

    Args:
        text: their lines.
        delimiter: between their fields.
        first: how many lines precede the text.
        count: at most so many rows.
    """
    line = 0
    reader = fields_of(io.StringIO(text, newline=""), delimiter)
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


class fields_of(Iterator[list[str]]):  # noqa: N801  used as a function, as `csv.reader` is
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


_BLANKS = " \t\r\n"
_STAND_IN = "\x1f"
"""Replaces a delimiter of two signs: the separator of units in ASCII, which texts do not have."""


def _without_comments(found: Rows, lines: list[str], first: int) -> Rows:
    """Return the rows with the header, if that is the last comment above the table."""
    begin = found.rows[0].line if found.rows else first
    above = [at for at in range(first, begin) if lines[at - first].startswith(COMMENT)]
    found = found._replace(comments=True)
    if not above or not found.rows:
        return found
    header = _commented_header(lines[above[-1] - first], found)
    if header is None:
        return found._replace(skipped=begin)
    # The sign alone is a name: "#,name,type".
    is_name = header[0] == COMMENT or len(found.rows[0].fields) != len(header)
    comments = len(above) > 1 or any(line.startswith(COMMENT) for line in lines[begin - first :])
    return found._replace(
        rows=[Row(above[-1], header), *found.rows],
        skipped=above[-1],
        comments=comments,
        commented_header=not is_name,
    )


def _commented_header(line: str, found: Rows) -> list[str] | None:
    """Return the names in a comment if it is the header of the rows below it; else None."""
    fields = found.fields
    width = Counter(map(len, fields)).most_common(1)[0][0]
    if width < 2 or header_is_certain(fields):
        return None
    for text in (line.removeprefix(COMMENT), line):
        row = next(_parsed(text, found.delimiter), None)
        if row is None or len(row.fields) != width or any(map(is_number, row.fields)):
            continue
        return [COMMENT, *row.fields[1:]] if row.fields[0] == "" else row.fields
    return None


def _without_titles(found: Rows) -> Rows:
    """Return rows without the titles above the header."""
    rows = found.rows
    width = Counter(len(row.fields) for row in rows).most_common(1)[0][0]
    place = 0
    while place < min(len(rows) - 1, MOST_TITLES) and _is_title(rows[place].fields, width):
        place += 1
    if found.delimiter == BLANK and not place:
        place = _words_above(rows)
    if not place or found.commented_header:
        return found
    header, *others = rows[place:]
    # The only name of a table with labels of rows is a word above two fields.
    is_phrase = all(len(row.fields) == 1 and " " in row.fields[0] for row in rows[:place])
    is_clear = _may_be_header(header.fields, others) or is_phrase
    if len(header.fields) != width or not is_clear:
        return found
    # A header that lacks the name of the labels has a field less than the rows right below it.
    is_apart = header.line > rows[place - 1].line + 1
    if not is_apart and any(1 < len(row.fields) == width - 1 for row in rows[:place]):
        return found
    return found._replace(rows=rows[place:], skipped=header.line)


def _words_above(rows: Sequence[Row]) -> int:
    """Return how many rows of words are above an empty line and a table with a certain header.

    Between blanks, a title may have as many fields as the table.
    """
    gaps = (at for at, (row, below) in enumerate(pairwise(rows), start=1) if below.line > row.line + 1)
    place = next(gaps, 0)
    is_clear = place <= MOST_TITLES and header_is_certain([row.fields for row in rows[place:]])
    return place if is_clear and not header_is_certain([row.fields for row in rows[:place]]) else 0


def _is_title(fields: Sequence[str], width: int) -> bool:
    """Return whether a row above a table may be its title, or belong to it: it has fewer fields with text."""
    if width < 2:
        return False
    filled = [field for field in fields if field]
    if len(fields) >= width:
        # A header with a single name has that at the place of the values: its index has none.
        is_alone = len(filled) == 1 and fields[0] != ""
        return not filled or (is_alone and (width > 2 or " " in fields[0]))
    return True


def _may_be_header(fields: Sequence[str], others: Sequence[Row]) -> bool:
    """Return whether a row may have the names of columns: several texts, beside which only years are."""
    names = [field for field in fields if field]
    numbers = [name for name in names if is_number(name)]
    if len(names) < 2 or len(numbers) == len(names) or not others:
        return False
    return not numbers or _are_years(numbers)


def _are_years(fields: Sequence[str]) -> bool:
    """Return whether fields are several years in their order, as names of columns are."""
    if len(fields) < 2 or not all(_YEAR.fullmatch(field) for field in fields):
        return False
    years = [int(field) for field in fields]
    steps = {later - earlier for earlier, later in pairwise(years)}
    return len(steps) == 1 and (steps == {1} or len(years) > 2) and steps != {0}


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has names: some numeric column does not begin with a number.

    A table without numeric columns has a header, since most files do.
    """
    begins = _numeric_begins(rows)
    if not begins or not all(begins):
        return True
    # Years are names beside a text: "country,2019,2020".
    return not all(map(is_number, rows[0])) and _are_years([field for field in rows[0] if is_number(field)])


def header_is_certain(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a numeric column shows that the first row has names."""
    begins = _numeric_begins(rows)
    return bool(begins) and not all(begins)


def _numeric_begins(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Return for each numeric column whether it begins with a number."""
    if len(rows) < 2:
        return []
    first, others = rows[0], rows[1:]
    return [
        is_number(first[column])
        for column in range(len(first))
        if not _is_gap_of_values(first[column], others)
        and _are_numbers([row[column] for row in others if column < len(row)])
    ]


def _is_gap_of_values(field: str, others: Sequence[Sequence[str]]) -> bool:
    """Return whether a field in the first row marks a missing value, such as "k.A.".

    A word with letters only that is nowhere else may be a name: sodium is Na.
    """
    if not field or not is_gap(field):
        return False
    return not field.isalpha() or any(field in row for row in others)


def is_number(field: str) -> bool:
    """Return whether a field is a number, in any usual form."""
    return _NUMBER.fullmatch(field) is not None


def _are_numbers(fields: Sequence[str]) -> bool:
    """Return whether all fields with a value, of which there are some, are numbers."""
    values = [field for field in fields if not is_gap(field)]
    return bool(values) and all(map(is_number, values))
