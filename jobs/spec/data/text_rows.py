"""Finds the rows of a table in a text file, below titles, between comments, with a stated delimiter."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from jobs.spec.data.delimiters import (
    BLANK,
    DELIMITERS,
    MOST_TITLES,
    RARE_DELIMITERS,
    Delimiter,
    Row,
    delimiter_of,
    evenness,
    parsed,
)
from jobs.spec.data.text_headers import header_is_certain, is_number, may_be_header

COMMENT = "#"
_STATED = re.compile(r'"?sep=(?P<delimiter>.)"?[\r\n]*', re.IGNORECASE)
"""The first line with which a program for spreadsheets learns the delimiter."""
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")


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
    rows = list(parsed(body, delimiter, first))
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
    if not others:
        return False
    first = lines.index(others[0])
    among = [line for line in lines[first:] if line.startswith(COMMENT)]
    delimiter = delimiter_of("".join(others))
    width = evenness("".join(others), delimiter)[1]
    return not any(len(row.fields) == width > 1 for row in parsed("".join(among), delimiter))


def _delimiter(text: str) -> Delimiter | None:
    known: tuple[Delimiter, ...] = (*DELIMITERS, *RARE_DELIMITERS, ":")
    return next((delimiter for delimiter in known if delimiter == text), None)


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
        row = next(parsed(text, found.delimiter), None)
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
    is_clear = may_be_header(header.fields, others) or is_phrase
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
