r"""Finds quotes that are written in another way than as two quotes: as \", or between ' and '.

Read as any other text, they would become parts of values, without a word.
"""

import mmap
import re
from collections.abc import Sequence
from pathlib import Path

from jobs.spec.data.dialect import Dialect
from workers.engine.data.expansion import CHUNK_BYTES
from workers.engine.data.reading.text_files.text_copy import shown
from workers.engine.errors import BadData

BACKSLASH = b"\\"
BOM_BYTES = 3
LINE_BYTES = 200
FEWEST_QUOTED = 2
"""So many values of a column are not between ' by chance."""
_SINGLE = re.compile(r"'.*'", re.DOTALL)
_SINGLE_IN_ROW = re.compile(r"(?:^|[,;\t|])'[^',;\t|]*[,;\t|][^']*'")


def check_quotes(path: Path, delimiter: str, codec: str | None = None) -> None:
    r"""Check that no quote within a text is written as \".

    A path such as "C:\data\" ends with these characters too, before a delimiter or the end of the line.

    Args:
        path: a text table.
        delimiter: between its fields.
        codec: of a text whose ASCII characters have two bytes; None for the others.

    Raises:
        BadData: one is.
    """
    if not path.stat().st_size:
        return
    found = _in_bytes(path, delimiter) if codec is None else _in_lines(path, delimiter, codec)
    if found is None:
        return
    number, line = found
    raise BadData(
        f'line {number} of {path.name} has quotes with a backslash, \\", which would end the text: '
        f"{shown(line.strip())}. Write them as two quotes, for example by pandas: "
        f"pandas.read_csv({path.name!r}, escapechar='\\\\').to_csv('data.csv', index=False)"
    )


def _in_bytes(path: Path, delimiter: str) -> tuple[int, str] | None:
    """Return the number and the text of the first line with such a quote."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if (place := _first_escaped(content, delimiter.encode())) is None:
            return None
        begin = content.rfind(b"\n", 0, place) + 1
        line = content[begin : begin + LINE_BYTES].split(b"\n")[0]
        # The lines above may be larger than the memory.
        parts = (content[at : min(at + CHUNK_BYTES, place)] for at in range(0, place, CHUNK_BYTES))
        return sum(part.count(b"\n") for part in parts) + 1, line.decode(errors="replace")


def _in_lines(path: Path, delimiter: str, codec: str) -> tuple[int, str] | None:
    """Return it for a text that has to be decoded."""
    last = b""
    with path.open(newline="", encoding=codec, errors="replace") as file:
        for number, line in enumerate(file, start=1):
            # A text may have begun in a line above: its quote is the last one there.
            content = last + line.encode(errors="replace")
            if _first_escaped(content, delimiter.encode(), first_bytes=(0,)) is not None:
                return number, line
            begin = content.rfind(b'"')
            last = content[max(begin - len(delimiter.encode()), 0) : begin + 1] if begin >= 0 else b""
    return None


def _first_escaped(
    content: mmap.mmap | bytes, delimiter: bytes, first_bytes: tuple[int, ...] = (0, BOM_BYTES)
) -> int | None:
    """Return the place of the first quote with a backslash inside of a text between quotes.

    Args:
        content: the text.
        delimiter: between its fields.
        first_bytes: the places at which it may begin with a quote.
    """
    # Most files have no backslash, which one byte shows at once.
    if (first := content.find(BACKSLASH)) < 0:
        return None
    inside = re.compile(rb'\\"(?! *(?:[\r\n"]|$|%s))' % re.escape(delimiter))
    for match in inside.finditer(content, first):
        begin = content.rfind(b'"', 0, match.start())
        before = content[max(begin - len(delimiter), 0) : max(begin, 0)]
        if begin in first_bytes or before == delimiter or before[-1:] in (b"\n", b"\r"):
            return match.start()
    return None


def findings_on_quotes(rows: Sequence[Sequence[str]], dialect: Dialect) -> list[str]:
    """Return a sentence on a column whose values are all between ' and ', which is no sign of quotes.

    Args:
        rows: the first rows; the header first, if there is one.
        dialect: how they are written.
    """
    body = rows[1:] if dialect.header else rows
    for values in zip(*body, strict=False):
        quoted = [value for value in values if _SINGLE.fullmatch(value)]
        if len(quoted) >= FEWEST_QUOTED and len(quoted) == sum(map(bool, values)):
            return [
                f"Values such as {quoted[0]} are between ', which is kept as a part of them. If these are "
                'quotes, write " in their place, for example by pandas: '
                "pandas.read_csv(…, quotechar=\"'\").to_csv('data.csv', index=False)."
            ]
    return []


def name_single_quotes(row: str) -> str:
    """Return what would do for a row with more fields if a delimiter is between ' and '; else nothing."""
    if _SINGLE_IN_ROW.search(row) is None:
        return ""
    return "; a delimiter between ' and ' divides fields, so write \" in place of ' around such texts"
