"""Decides whether the first row of a table has the names of its columns."""

import re
from collections.abc import Sequence
from itertools import pairwise

from jobs.spec.data.gap_words import is_gap

_NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}([.,]\d{3})+)([.,]\d+)?([eE][+-]?\d+)?")
_YEAR = re.compile(r"1[89]\d\d|20\d\d")


def may_be_header(fields: Sequence[str], others: Sequence[object]) -> bool:
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
        and are_numbers([row[column] for row in others if column < len(row)])
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


def are_numbers(fields: Sequence[str]) -> bool:
    """Return whether all fields with a value, of which there are some, are numbers."""
    values = [field for field in fields if not is_gap(field)]
    return bool(values) and all(map(is_number, values))
