"""Refuses tables whose columns have fixed widths where blanks alone do not show the fields of a row."""

import re
from collections.abc import Sequence

from jobs.spec.data.delimiters import BLANK
from jobs.spec.data.dialect import Dialect
from workers.engine.data.reading.text_files.text_copy import shown
from workers.engine.errors import BadData

FEWEST_LINES = 3
FEWEST_ALIGNED, MOST_IRREGULAR = 5, 0.2
"""In so many lines, words are in columns by chance seldom, although some lines have gaps."""
_WIDE_BLANK = re.compile(r"\S {2,}\S")
_WORD = re.compile(r"\S+")


def check_fixed_width(text: str, dialect: Dialect, rows: Sequence[Sequence[str]], file: str) -> None:
    """Check that the fields between blanks do not shift: in a row with a gap, the others would.

    Args:
        text: the file's first complete lines.
        dialect: how it is read.
        rows: the first rows, as they are read.
        file: the file's name, for messages.

    Raises:
        BadData: the columns have fixed widths, and a row has a gap, or a value with a blank.
    """
    if dialect.delimiter != BLANK and any(len(row) > 1 for row in rows):
        return
    lines = [
        (number, line.rstrip())
        for number, line in enumerate(text.splitlines(), start=1)
        if number > dialect.skip_lines and line.strip()
    ]
    if len(lines) < FEWEST_LINES or any('"' in line or "\t" in line for _, line in lines):
        return
    spans = _columns([line for _, line in lines])
    wide = sum(_WIDE_BLANK.search(line) is not None for _, line in lines)
    if len(spans) < 2 or 2 * wide <= len(lines):
        return
    reasons = [(number, line, reason) for number, line in lines if (reason := _irregularity(line, spans))]
    # Rows of equally many words may have a gap and a value with a blank, but rather are not aligned.
    are_even = len({len(line.split()) for _, line in lines}) == 1
    is_aligned = len(lines) >= FEWEST_ALIGNED and len(reasons) <= MOST_IRREGULAR * len(lines)
    if reasons and (is_aligned or not are_even):
        number, line, reason = reasons[0]
        raise BadData(
            f"{file} has columns of fixed widths, and blanks do not show the fields of line {number}, "
            f"which has {reason}: {shown(line)}. Write it with a delimiter, for example by pandas: "
            f"pandas.read_fwf({file!r}).to_csv('data.csv', index=False)"
        )


def _columns(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the begin and the end of each column: between two of them, all lines have a blank."""
    width = max(map(len, lines))
    padded = [line.ljust(width) for line in lines]
    used = "".join(" " if all(line[place] == " " for line in padded) else "x" for place in range(width))
    return [match.span() for match in _WORD.finditer(used)]


def _irregularity(line: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return what makes the words of a line differ from the columns; empty if each has one word."""
    counts = [len(line[begin:end].split()) for begin, end in spans]
    if 0 in counts:
        return f"no value in column {counts.index(0) + 1}"
    place = next((place for place, count in enumerate(counts) if count > 1), None)
    return "" if place is None else f"a blank in column {place + 1}"
