"""Finds headers of several rows: names above units, or the levels of names that pandas writes.

Below such a header, every column of numbers begins with texts in all further rows of the header.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from jobs.spec.data.gap_words import is_gap
from jobs.spec.data.text_headers import are_numbers, is_number

MOST_HEADER_ROWS = 5
FEWEST_BELOW = 2
"""Rows below the header, which show the columns of numbers."""
FEWEST_COLUMNS = 2
"""So many columns of numbers do not begin with words by chance."""
_IN_BRACKETS = re.compile(r"[\[({<].*[\])}>]")
_UNITS = frozenset(
    re.findall(
        r"\S+",
        "m km cm mm s sec ms min h hr d day days a yr year years kg g mg t lb oz k c f °c °f degc degf deg ° "
        "% ‰ pa hpa kpa mpa bar mbar v kv a ma w kw mw kwh mwh j kj n hz khz mhz l ml mol m/s km/h mph m2 m3 "
        "m² m³ ppm ppb eur usd gbp € $ £ count counts number numeric integer int int32 int64 float float32 "
        "float64 double decimal string str text varchar object category bool boolean date datetime time "
        "timestamp num chr dbl fct lgl",
    )
)
"""Units and types in lower case: one of them below a name shows a further row of the header."""
_YEAR = re.compile(r"1[89]\d\d|20\d\d")
_UNNAMED_LEVEL = re.compile(r"Unnamed: \d+_level_\d+")


def count_header_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return how many of the first rows are the header; 1 if it is not certain that there are several."""
    width = len(rows[0]) if rows else 0
    numbers = [field for field in (rows[0] if rows else ()) if is_number(field)]
    if width < FEWEST_COLUMNS or (numbers and not (_has_levels(rows[0]) and all(map(_is_year, numbers)))):
        return 1
    for count in range(min(MOST_HEADER_ROWS, len(rows) - FEWEST_BELOW), 1, -1):
        header, body = rows[:count], rows[count:]
        # A line break within a name is part of a field with quotes, which lines do not show.
        even = all(len(row) == width for row in header) and not any("\n" in f for row in header for f in row)
        if even and _are_header(header, body):
            return count
    return 1


def _are_header(header: Sequence[Sequence[str]], body: Sequence[Sequence[str]]) -> bool:
    """Return whether several rows above others are a header."""
    width = len(header[0])
    columns = [[row[place] for row in body if place < len(row)] for place in range(width)]
    numeric = [place for place, column in enumerate(columns) if are_numbers(column)]
    others = [place for place in range(width) if place not in numeric]
    further = header[1:]
    if _names_the_labels(header):
        further = header[1:-1]
    is_levels = _has_levels(header[0])
    if not numeric or not all(
        _is_of_header(row, numeric) or (is_levels and _has_years(row, columns, numeric)) for row in further
    ):
        return False
    if any(row[place] and row[place] in columns[place] for row in further for place in others):
        return False
    if len(further) < len(header) - 1 and not further:
        return True
    # A first row of data may have one word in several columns of numbers: "Anna,absent,absent".
    are_names = len(numeric) >= FEWEST_COLUMNS and all(_differ(_texts([row], numeric)) for row in further)
    return are_names or is_levels or all(map(_is_unit, _texts(further, numeric)))


def _is_of_header(row: Sequence[str], numeric: Sequence[int]) -> bool:
    """Return whether a row has texts in most columns of numbers, and a number in none."""
    texts = [row[place] for place in numeric]
    named = sum(not is_gap(text) for text in texts)
    return not any(map(is_number, texts)) and named > 0 and 2 * named >= len(numeric)


def _has_years(row: Sequence[str], columns: Sequence[Sequence[str]], numeric: Sequence[int]) -> bool:
    """Return whether a row has years above numbers that are none."""
    years = [row[place] for place in numeric if row[place]]
    below = [field for place in numeric for field in columns[place]]
    return len(years) > 1 and all(map(_is_year, years)) and not all(map(_is_year, below))


def _is_year(text: str) -> bool:
    return _YEAR.fullmatch(text) is not None


def _names_the_labels(header: Sequence[Sequence[str]]) -> bool:
    """Return whether the last row has the name of the labels alone: pandas leaves its other fields empty."""
    last = header[-1]
    count = next((place for place, field in enumerate(last) if not field), len(last))
    if not 0 < count < len(last) or any(last[count:]) or any(map(is_number, last)):
        return False
    return len(header) > 2 or not any(header[0][:count])


def _has_levels(names: Sequence[str]) -> bool:
    """Return whether a name is repeated beside itself, or is left empty there, as upper levels are."""
    filled = [place for place, name in enumerate(names) if name]
    inner = names[filled[0] : filled[-1] + 1] if filled else []
    return "" in inner or any(name == after for name, after in pairwise(inner))


def _texts(rows: Sequence[Sequence[str]], places: Sequence[int]) -> list[str]:
    return [row[place] for row in rows for place in places if not is_gap(row[place])]


def _differ(texts: Sequence[str]) -> bool:
    return len({*texts}) == len(texts)


def _is_unit(text: str) -> bool:
    return text.lower() in _UNITS or _IN_BRACKETS.fullmatch(text) is not None


def join_names(header: Sequence[Sequence[str]]) -> list[str]:
    """Return one name for each column of a header of several rows.

    Names that differ are kept without the units below them; levels are joined, as in `price_mean`.
    """
    labels = header[-1] if _names_the_labels(header) else []
    levels = [list(row) for row in (header[:-1] if labels else header)]
    names = [_without_pandas_name(name) for name in levels[0]]
    if not _has_levels(names) and len({*names}) == len(names):
        return [label or name for label, name in zip([*labels, *names[len(labels) :]], names, strict=True)]
    for level in levels[:-1]:
        _fill(level)
    joined = ["_".join(_different(parts)) for parts in zip(*levels, strict=True)]
    return [label or name for label, name in zip([*labels, *joined[len(labels) :]], joined, strict=True)]


def _fill(level: list[str]) -> None:
    """Write a name into the empty fields behind it, where a spreadsheet has one wide cell."""
    for place in range(1, len(level)):
        if not level[place]:
            level[place] = level[place - 1]


def _different(parts: Sequence[str]) -> list[str]:
    """Return the names of a column's levels without empty and repeated ones."""
    return [*dict.fromkeys(name for part in parts if (name := _without_pandas_name(part)))]


def _without_pandas_name(name: str) -> str:
    return "" if _UNNAMED_LEVEL.fullmatch(name) else name
