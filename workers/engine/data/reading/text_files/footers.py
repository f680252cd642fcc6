"""Finds lines below a table that are no rows of it: notes, and a total of the rows above."""

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jobs.spec.data.delimiters import FieldReader

FOOTER_LINES = 12
"""Lines at the end of a file that may be a footer."""
TOTALS = frozenset(
    {
        "total",
        "totals",
        "grand total",
        "sum",
        "sums",
        "overall",
        "gesamt",
        "summe",
        "gesamtsumme",
        "total general",
    }
)
NOTE = re.compile(
    r"(sources?|notes?|footnotes?|generated|exported|created|last updated|quelle|hinweis|fuente)\b|"
    r"copyright|\(c\)|©|\*|\(?\d+ rows",
    re.IGNORECASE,
)
"""Begins of a note below a table."""
NEARLY = 1e-6


class Footer(NamedTuple):
    """The end of a file.

    Attributes:
        lines: how many lines at its end are no rows.
        findings: sentences on a last row that may be a total.
    """

    lines: int = 0
    findings: tuple[str, ...] = ()


def find_footer(
    lines: Sequence[str],
    rows: Sequence[Sequence[str]],
    delimiter: str,
    complete: Callable[[], Sequence[str]] | None,
) -> Footer:
    """Return a file's footer.

    Args:
        lines: its last lines.
        rows: the first rows, the header included.
        delimiter: between their fields.
        complete: returns all lines of the file, with which a total is checked; None if they are too many.
    """
    width = max(len(row) for row in rows)
    if width < 2 or any('"' in line for line in lines):
        # Within quotes, a line need not be a row.
        return Footer()
    notes = _notes(lines, width, delimiter)
    ends = list(lines[: len(lines) - notes])
    while ends and not ends[-1].strip():
        ends.pop()
    last = _fields(ends[-1], delimiter) if len(ends) > 2 else []
    if not _may_be_total(last, rows[1:], width):
        return Footer(notes)
    removed = len(lines) - len(ends) + 1
    if complete is not None and _is_sum(last, complete()[:-removed], delimiter):
        return Footer(removed)
    about = f"The last row begins with {last[0]!r}. If it sums up the rows above, remove it from the file."
    return Footer(notes, (about,))


def _notes(lines: Sequence[str], width: int, delimiter: str) -> int:
    """Return how many lines at the end are notes, with the empty ones above them."""
    found = 0
    for number, line in enumerate(reversed(lines), start=1):
        if not line.strip():
            continue
        fields = _fields(line, delimiter)
        if len(lines) == number or not fields or any(fields[1:]):
            break
        is_apart = not lines[-number - 1].strip() or found == number - 1 > 0
        is_named = NOTE.match(fields[0]) is not None
        # A row may have its first value alone, with gaps in all others.
        if not (is_apart or is_named if len(fields) == 1 else is_named and width > 2):
            break
        found = number
    if not found:
        return 0
    while found < len(lines) and not lines[-found - 1].strip():
        found += 1
    return found


def _fields(line: str, delimiter: str) -> list[str]:
    return [field.strip() for field in next(FieldReader(iter([line]), delimiter), [])]


def _may_be_total(last: Sequence[str], body: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether a last row names itself a total, as no other row does."""
    if len(last) != width or last[0].casefold().rstrip(":") not in TOTALS:
        return False
    others = [row[0].casefold() for row in body if row and row != list(last)]
    return last[0].casefold() not in others and any(_number(field) is not None for field in last[1:])


def _is_sum(last: Sequence[str], lines: Sequence[str], delimiter: str) -> bool:
    """Return whether a row has the sum of a column, or its mean, for each number that it has."""
    totals = {column: total for column, field in enumerate(last) if (total := _number(field)) is not None}
    sums, counts = dict.fromkeys(totals, 0.0), dict.fromkeys(totals, 0)
    for row in FieldReader(iter(lines), delimiter):
        for column in totals:
            if column < len(row) and (number := _number(row[column].strip())) is not None:
                sums[column] += number
                counts[column] += 1
    return all(
        counts[column] > 1
        and (
            math.isclose(sums[column], total, rel_tol=NEARLY)
            or math.isclose(sums[column] / counts[column], total, rel_tol=1e-3)
        )
        for column, total in totals.items()
    )


def _number(field: str) -> float | None:
    try:
        number = float(field)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
