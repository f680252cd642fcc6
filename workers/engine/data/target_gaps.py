"""Leaves out table rows that have no target, if their sender has chosen to."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jobs.spec.data.gap_words import named_words
from jobs.spec.sections.data import RowsWithoutTarget
from workers.engine.arrays import Array
from workers.engine.data.encode import missing
from workers.engine.data.reading.column_texts import ColumnTexts
from workers.engine.data.schema import Schema, with_role
from workers.engine.data.spilled import editable, head
from workers.engine.data.table import Table
from workers.engine.data.texts import is_text
from workers.engine.data.weights import check_weights
from workers.engine.errors import BadData, TargetGaps


class Kept(NamedTuple):
    """The rows that have a target, how many have none, and which these are, (rows,); None without any."""

    schema: Schema
    left_out: int
    gaps: Array | None = None


def with_target(schema: Schema, choice: RowsWithoutTarget, read: Table) -> Kept:
    """Return a table without the rows that have no target.

    Args:
        schema: the table with its column types.
        choice: whether such rows may be left out.
        read: the table as it was read, before its texts were converted to these types.

    Raises:
        TargetGaps: there are such rows, which may not be left out.
        BadData: no row has a target, or a row that has one lacks a weight; see `check_weights`.
    """
    gaps = missing(schema.table.columns[schema.target])
    count = int(gaps.sum())
    if not count:
        _check_weights(schema, gaps)
        return Kept(schema, 0)
    rows = len(gaps)
    if count == rows:
        raise BadData(f"the target {schema.target!r} has no value in any row; choose another target")
    if choice == "refuse":
        raise TargetGaps(_refusal(schema, read, gaps))
    _check_weights(schema, gaps)
    table = without_rows(schema.table, gaps)
    columns = editable(table.columns)
    # Gaps among true and false make them the numbers 1 and 0, whose classes would have other names.
    was_text = is_text(head(read.columns, schema.target, 1))
    if was_text and schema.columns[schema.target].type == "boolean":
        columns[schema.target] = columns[schema.target].astype(bool)
    return Kept(replace(schema, table=replace(table, columns=columns)), count, gaps)


def without_rows(table: Table, left_out: Array) -> Table:
    """Return a table without some rows.

    Args:
        table: the table.
        left_out: whether each row is left out, (rows,).
    """
    columns = editable(table.columns)
    for name, column in table.columns.items():
        columns[name] = column[~left_out]
    return replace(table, columns=columns)


def _refusal(schema: Schema, read: Table, gaps: Array) -> str:
    """Return the message about rows without a target; words in their place may be a class."""
    words = _words_for_gaps(schema, read)
    named = f" ({named_words(tuple(words), words)})" if words else ""
    column = schema.columns[schema.target]
    if column.misfits is not None:
        named += f" ({column.misfits.named}, which is no {column.type})"
    keep = ", keep the words as classes (type = category and gap_words = [] in columns)" if words else ""
    return (
        f"the target {schema.target!r} has no value in {int(gaps.sum()):,} of {len(gaps):,} rows{named}, the "
        f"first in row {int(np.argmax(gaps)) + 1}; choose to leave these rows out (rows_without_target = "
        f"leave_out){keep}, or upload a file in which they have a target"
    )


def _words_for_gaps(schema: Schema, read: Table) -> Mapping[str, int]:
    """Return the words in the file where the target has no value, with the number of their rows."""
    target, stated = schema.target, schema.columns[schema.target].gap_words
    texts = ColumnTexts.of(read.columns, target)
    words = read.gap_words.get(target, {}) if texts is None else texts.gap_words()
    return {word: rows for word, rows in words.items() if stated is None or word in stated}


def _check_weights(schema: Schema, gaps: Array) -> None:
    # With the rows that are left out still in the table, so that the message has the row of the file.
    if (weight := with_role(schema.columns, "weight")) is not None:
        check_weights(weight, schema.table.columns[weight], schema.columns[weight].type, ~gaps)
