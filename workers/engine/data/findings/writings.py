"""Finds categories and labels that differ in their writing only, and merges them."""

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple

import numpy as np

from jobs.spec.data.columns import ColumnRequest, ColumnType
from jobs.spec.data.offers import Offer
from jobs.spec.data.writings import folded
from workers.engine.arrays import Array
from workers.engine.data.labels import is_list_column, lists_of
from workers.engine.data.spilled import SpilledColumns, head, words
from workers.engine.data.table import Table
from workers.engine.data.texts import is_text, text_array

PART_ROWS = 65_536
"""Rows that are counted at once, since a Python object takes more memory than its text."""
FIRST_ROWS = 100
MAX_VALUES = 10_000
"""Columns with more different values are not compared: they are no categories that a person knows."""
MOST_GROUPS = 5
"""Groups that a message names."""
MOST_ROWS = 3
"""Rows of each writing that a message names."""
MOST_CHARACTERS = 60


class Writing(NamedTuple):
    """One way in which a value is written.

    Attributes:
        text: the text.
        rows: how many rows have it.
    """

    text: str
    rows: int


Group = tuple[Writing, ...]
"""The writings of one value, the most frequent one first."""


def count_values(column: Array) -> Counter[str]:
    """Return how many rows have each text, ordered by their first rows."""
    counts: Counter[str] = Counter()
    for start in range(0, len(column), PART_ROWS):
        counts.update(column[start : start + PART_ROWS].tolist())
    return counts


def counts_of(columns: Mapping[str, Array], name: str) -> Mapping[str, int]:
    """Return how many rows have each text of a category; none for a large column whose words are unknown."""
    if (distinct := words(columns, name)) is not None:
        return distinct.counts()
    if isinstance(columns, SpilledColumns) and not columns.is_in_memory(name):
        return {}
    return count_values(columns[name])


def groups_of(counts: Mapping[str, int]) -> tuple[Group, ...]:
    """Return the values that have several writings."""
    if len(counts) > MAX_VALUES:
        return ()
    by_value: defaultdict[str, list[Writing]] = defaultdict(list)
    for text, rows in counts.items():
        if text:
            by_value[folded(text)].append(Writing(text, rows))
    several = (writings for writings in by_value.values() if len(writings) > 1)
    # Among equally frequent ones the first in the alphabet, so that the order of the rows does not matter.
    return tuple(tuple(sorted(writings, key=lambda one: (-one.rows, one.text))) for writings in several)


def find_groups(columns: Mapping[str, Array], name: str, kind: ColumnType) -> tuple[Group, ...]:
    """Return the values of a column of categories or of lists of labels that have several writings."""
    if (distinct := words(columns, name)) is not None:
        counts = distinct.counts()
        if is_list_column(distinct.values):
            return groups_of(_count_labels(distinct.values, [*counts.values()]))
        return groups_of(counts) if kind == "category" else ()
    # The values of a large column, of which words are unknown, are not read only to be compared.
    if is_list_column(head(columns, name, FIRST_ROWS)) and is_list_column(columns[name]):
        return groups_of(_count_labels(columns[name], repeat(1)))
    if kind != "category" or (isinstance(columns, SpilledColumns) and not columns.is_in_memory(name)):
        return ()
    return groups_of(count_values(columns[name]))


def _count_labels(lists: Array, counts: Iterable[int]) -> Counter[str]:
    """Return how many rows have each label.

    Args:
        lists: JSON lists, (lists,).
        counts: how many rows have each list.
    """
    labels: Counter[str] = Counter()
    for row, count in zip(lists_of(lists), counts, strict=False):
        labels.update(dict.fromkeys(row, count))
    return labels


def merge(columns: Mapping[str, Array], name: str, groups: tuple[Group, ...]) -> Array:
    """Return a column whose values, or labels of lists, have their most frequent writing, (rows,)."""
    names = {writing.text: group[0].text for group in groups for writing in group[1:]}
    if (distinct := words(columns, name)) is not None:
        return np.asarray(_renamed(distinct.values, names)[distinct.codes])
    return _renamed(columns[name], names)


def _renamed(column: Array, names: Mapping[str, str]) -> Array:
    if is_list_column(column):
        lists = ([names.get(label, label) for label in row] for row in lists_of(column))
        return text_array(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in lists)
    return text_array(names.get(text, text) for text in column.tolist())


def offer_to_merge(name: str, groups: tuple[Group, ...], column: Array | None, *, is_target: bool) -> Offer:
    """Return the offer to merge a column's writings.

    Args:
        name: the column's name.
        groups: the writings.
        column: its values, in which the rows are searched; None for lists.
        is_target: whether they are classes.
    """
    what = "classes of the target" if is_target else "categories of column"
    return Offer(
        finding=f"Different {what} {name!r} differ in their writing only: {_some(groups, column)}. If they "
        "are the same, merge them; requests are then read in the same way.",
        label=f"Merge the writings of {name}",
        change=ColumnRequest(name=name, merge_labels=True),
    )


def offer_to_divide(name: str, groups: tuple[Group, ...]) -> Offer:
    """Return the offer to undo a merge."""
    return Offer(
        finding=f"Values of column {name!r} got their most frequent writing: {_some(groups, None)}.",
        label=f"Keep the writings of {name} apart",
        change=ColumnRequest(name=name, merge_labels=False),
    )


def _some(groups: tuple[Group, ...], column: Array | None) -> str:
    """Return the first groups, for a message."""
    named = "; ".join(_group(group, column) for group in groups[:MOST_GROUPS])
    more = len(groups) - MOST_GROUPS
    return named + (f"; and {more:,} more" if more > 0 else "")


def _group(group: Group, column: Array | None) -> str:
    # Two forms of one letter look the same.
    look_alike = len({unicodedata.normalize("NFKC", writing.text) for writing in group}) < len(group)
    return ", ".join(_writing(writing, column, escape=look_alike) for writing in group)


def _writing(writing: Writing, column: Array | None, *, escape: bool) -> str:
    text = writing.text
    text = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
    shown = ascii(text) if escape else repr(text)
    many = "one row" if writing.rows == 1 else f"{writing.rows:,} rows"
    if column is None:
        return f"{shown} ({many})"
    rows = np.flatnonzero(column == writing.text)[:MOST_ROWS] + 1
    listed = ", ".join(f"{row:,}" for row in rows.tolist())
    return f"{shown} ({many}: {listed}{', …' if writing.rows > len(rows) else ''})"


class MergedTarget(NamedTuple):
    """A table of arrays whose target may have been merged, and the offer about it."""

    table: Table
    offers: tuple[Offer, ...]


def merge_target(table: Table, target: str, requests: Sequence[ColumnRequest]) -> MergedTarget:
    """Return a table of arrays in which each class has its most frequent writing, if that was chosen."""
    choice = next((request.merge_labels for request in requests if request.name == target), None)
    column = table.columns[target]
    if not is_text(column) or column.ndim > 1 or choice is False:
        return MergedTarget(table, ())
    if not (groups := find_groups(table.columns, target, "category")):
        return MergedTarget(table, ())
    if choice is None:
        searched = None if is_list_column(column) else column
        return MergedTarget(table, (offer_to_merge(target, groups, searched, is_target=True),))
    columns = {**table.columns, target: merge(table.columns, target, groups)}
    return MergedTarget(replace(table, columns=columns), (offer_to_divide(target, groups),))
