"""Finds the rows of a table in a text file, below titles, between comments, with a stated delimiter."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

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
from jobs.spec.data.header_rows import count_header_rows, join_names
from jobs.spec.data.text_headers import header_is_certain, is_number, may_be_header

CommentSign = Literal["#", "%", "//", "!", ";", "-- "]
COMMENT_SIGNS: tuple[CommentSign, ...] = get_args(CommentSign)
"""Begins of comments in the order in which they are tried: of scripts, MATLAB, C, GEO, INI and SQL."""
USUAL_SIGN: CommentSign = "#"
_STATED = re.compile(r'"?sep=(?P<delimiter>.)"?[\r\n]*', re.IGNORECASE)
"""The first line with which a program for spreadsheets learns the delimiter."""
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")


class Rows(NamedTuple):
    """The first rows of a text file.

    Attributes:
        delimiter: between their fields.
        rows: without those that are no part of the table; the header first, if there is one.
        skipped: how many lines precede the first row: titles, comments, and empty lines between them.
        comments: whether lines that begin with `sign` are comments.
        sign: the begin of comments.
        commented_header: whether the header itself begins with it.
        header_rows: how many rows the header has in the file; in `rows` it is one.
    """

    delimiter: Delimiter
    rows: list[Row]
    skipped: int = 0
    comments: bool = False
    sign: CommentSign = USUAL_SIGN
    commented_header: bool = False
    header_rows: int = 1

    @property
    def fields(self) -> list[list[str]]:
        """The fields of each row."""
        return [row.fields for row in self.rows]


def find_rows(
    text: str,
    delimiter: Delimiter | None = None,
    skipped: int | None = None,
    comments: bool | None = None,
    header_rows: int | None = None,
) -> Rows:
    """Find the rows of a table in a file's first text.

    Args:
        text: complete lines.
        delimiter: between fields; detected if None.
        skipped: lines above the header; detected if None.
        comments: whether lines that begin with a sign such as # are comments; detected if None.
        header_rows: how many rows the header has; detected if None.
    """
    stated = _STATED.match(text) if skipped is None else None
    first = 1 if stated else skipped or 0
    if stated and delimiter is None:
        delimiter = _delimiter(stated["delimiter"])
    lines = [match.group() for match in _LINES.finditer(text)][first:]
    sign = None if comments is False else _sign_of_comments(lines, are_stated=bool(comments))
    body = "".join("\n" if sign and line.startswith(sign) else line for line in lines)
    delimiter = delimiter or delimiter_of(body)
    rows = list(parsed(body, delimiter, first))
    found = Rows(delimiter, rows, first)
    if sign:
        found = _without_comments(found._replace(sign=sign), lines, first)
    if skipped is None and found.rows:
        # Rows in the middle are wider than titles, and as wide as the header.
        found = _without_titles(found)
    return _with_one_header(found, header_rows)


def _sign_of_comments(lines: Sequence[str], *, are_stated: bool) -> CommentSign | None:
    """Return the begin of the lines that are comments; None if there are none.

    Args:
        lines: of the file.
        are_stated: whether a person chose that there are comments.
    """
    used = [sign for sign in COMMENT_SIGNS if any(line.startswith(sign) for line in lines)]
    found = next((sign for sign in used if _are_comments(lines, sign)), None)
    return USUAL_SIGN if found is None and are_stated and USUAL_SIGN in used else found


def _are_comments(lines: Sequence[str], sign: CommentSign) -> bool:
    """Return whether lines with a sign are comments: they are above all others, or have another number of
    fields.

    The value of a first column may begin with the sign, such as "#1".
    """
    others = [line for line in lines if line.strip() and not line.startswith(sign)]
    if not others:
        return False
    commented = [line for line in lines if line.startswith(sign)]
    # A single line above may be the header, whose first name begins with the sign: "% change,price".
    first = 0 if len(commented) == 1 and sign != USUAL_SIGN else lines.index(others[0])
    among = [line for line in lines[first:] if line.startswith(sign)]
    if len(commented) > max(len(others), 1):
        # Values of a column may begin with the sign, such as colours: then most lines do, and are rows.
        if among:
            return False
        among = commented[:-1]
    delimiter = delimiter_of("".join(others))
    if delimiter == sign:
        # The first field is empty.
        return False
    width = evenness("".join(others), delimiter)[1]
    if width > 1 and any(len(row.fields) == width for row in parsed("".join(among), delimiter)):
        return False
    # Right above the other rows, one with numbers is a row too.
    last = next(parsed(commented[-1], delimiter), None) if lines.index(commented[-1]) < first else None
    is_row = last is not None and len(last.fields) == width > 1 and any(map(is_number, last.fields))
    return delimiter == BLANK or not is_row


def _delimiter(text: str) -> Delimiter | None:
    known: tuple[Delimiter, ...] = (*DELIMITERS, *RARE_DELIMITERS, ":")
    return next((delimiter for delimiter in known if delimiter == text), None)


def _without_comments(found: Rows, lines: list[str], first: int) -> Rows:
    """Return the rows with the header, if that is the last comment above the table."""
    begin = found.rows[0].line if found.rows else first
    above = [at for at in range(first, begin) if lines[at - first].startswith(found.sign)]
    found = found._replace(comments=True)
    if not above or not found.rows:
        return found
    header = _commented_header(lines[above[-1] - first], found)
    if header is None:
        return found._replace(skipped=begin)
    # The sign alone is a name: "#,name,type".
    is_name = header[0] == found.sign or len(found.rows[0].fields) != len(header)
    comments = len(above) > 1 or any(line.startswith(found.sign) for line in lines[begin - first :])
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
    for text in (line.removeprefix(found.sign), line):
        row = next(parsed(text, found.delimiter), None)
        if row is None or len(row.fields) != width or any(map(is_number, row.fields)):
            continue
        return [found.sign, *row.fields[1:]] if row.fields[0] == "" else row.fields
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


def _with_one_header(found: Rows, stated: int | None) -> Rows:
    """Return rows whose header is one row, if the file has several rows of names, units or levels.

    Args:
        found: the rows.
        stated: how many rows the header has; detected if None.
    """
    count = count_header_rows(found.fields) if stated is None else min(stated, len(found.rows) - 1)
    if count <= 1:
        return found
    header = Row(found.rows[0].line, join_names(found.fields[:count]))
    return found._replace(rows=[header, *found.rows[count:]], header_rows=count)
