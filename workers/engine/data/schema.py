"""Proposes a role and a type for each table column, as far as a person has not chosen them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jobs.spec.data.columns import (
    LONE_ROLES,
    ORDERED,
    SPLIT_ROLES,
    ColumnRequest,
    ColumnRole,
    ColumnType,
)
from jobs.spec.data.dates.formats import EXAMPLES
from jobs.spec.data.number_format import NumberFormat
from jobs.spec.data.offers import Misfits, Offer
from workers.engine.arrays import Array
from workers.engine.data.dates.facts import DateFacts
from workers.engine.data.encode import choose_target, missing, some
from workers.engine.data.labels import is_list_column
from workers.engine.data.reading.column_types import TypedColumn
from workers.engine.data.reading.typed_columns import read_column
from workers.engine.data.spilled import editable, head, words
from workers.engine.data.table import Table
from workers.engine.errors import BadData

MIN_ROWS_OF_IDS = 20
"""In fewer rows, all values of a column may differ by chance."""
FIRST_ROWS = 10_000
ID_NAME = re.compile(r"(^|[ _.-])(id|uuid|guid|key|index|row|nr|no|number)$|^unnamed: 0$", re.IGNORECASE)
ID_NAME_IN_CAMEL_CASE = re.compile(r"[a-z](Id|ID|Key|Index|Nr|No)$")


@dataclass(frozen=True)
class ColumnSchema:
    """A column's role and type, why it is left out of the features, and how its texts were read."""

    role: ColumnRole
    type: ColumnType
    reason: str | None = None
    number_format: NumberFormat | None = None
    gap_words: tuple[str, ...] | None = None
    misfits: Misfits | None = None
    dates: DateFacts | None = None


@dataclass(frozen=True)
class Schema:
    """A table whose column values have the column types.

    Attributes:
        table: the columns.
        columns: role and type by name.
        target: the target column's name.
        findings: sentences about how columns were read.
        offers: other readings.
    """

    table: Table
    columns: Mapping[str, ColumnSchema]
    target: str
    findings: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The feature names, in the table's order."""
        return tuple(name for name, column in self.columns.items() if column.role == "feature")


def is_tabular(table: Table) -> bool:
    """Return whether all columns have one value for each row."""
    return all(head(table.columns, name, 1).ndim == 1 for name in table.columns)


def propose(
    table: Table,
    *,
    target: str | None,
    features: Sequence[str] | None,
    requests: Sequence[ColumnRequest] = (),
) -> Schema:
    """Return each column's role and type.

    Args:
        table: as it was read; its columns have one value for each row.
        target: the target's name; None for the column whose role was requested, or a usual name.
        features: the feature names; None for all columns that are not left out for a reason.
        requests: roles and types that a person chose.

    Raises:
        BadData: a column does not exist, or its values do not have the requested type.
    """
    chosen = {request.name: request for request in requests}
    for name in (*chosen, *(features or ())):
        if name not in table.columns:
            raise BadData(f"no column {name!r}; there are {some(list(table.columns))}")
    targets = [request.name for request in requests if request.role == "target"]
    target = choose_target(table, target or (targets[0] if targets else None))
    typed = editable(table.columns)
    schema: dict[str, ColumnSchema] = {}
    findings: list[str] = []
    offers: list[Offer] = []
    for name in table.columns:
        request = chosen.get(name, ColumnRequest(name=name))
        column = _typed(name, typed, request, table, is_target=name == target)
        if column.values is not None:
            typed[name] = column.values
        if request.role != "ignore":
            findings.extend(column.findings)
            offers.extend(column.offers)
        schema[name] = replace(
            _role(name, typed, column.type, request.role, target, features),
            number_format=column.number_format,
            gap_words=column.gap_words,
            misfits=column.misfits,
            dates=column.dates,
        )
    _check_lone_roles(schema, requests, features)
    if not any(column.role == "feature" for column in schema.values()):
        reasons = [f"{name!r}: {column.reason}" for name, column in schema.items() if column.reason]
        raise BadData(f"no column can be used as a feature; {some(reasons)}")
    return Schema(replace(table, columns=typed), schema, target, tuple(findings), tuple(offers))


def with_role(columns: Mapping[str, ColumnSchema], role: ColumnRole) -> str | None:
    """Return the first column that has a role, by name; None if there is none."""
    return next((name for name, column in columns.items() if column.role == role), None)


def _check_lone_roles(
    schema: Mapping[str, ColumnSchema], requests: Sequence[ColumnRequest], features: Sequence[str] | None
) -> None:
    """Check the columns that decide the split or weigh the rows.

    Raises:
        BadData: one is also a feature or the target, or a time has no order.
    """
    for request in requests:
        if request.role not in LONE_ROLES:
            continue
        if request.name in (features or ()) or schema[request.name].role == "target":
            more = "an experiment may choose it as a feature in addition, in data.features"
            raise BadData(
                f"column {request.name!r} has the role {request.role}, and is also a feature or the target"
                + (f"; {more}" if request.role in SPLIT_ROLES else "")
            )
        if request.role == "time" and (kind := schema[request.name].type) not in ORDERED:
            raise BadData(
                f"column {request.name!r} of type {kind} has no order in time; the role time needs one of "
                f"{', '.join(sorted(ORDERED))}. If its values are dates, state their date_format, such as "
                f"{EXAMPLES}"
            )


def _typed(
    name: str, columns: Mapping[str, Array], request: ColumnRequest, table: Table, *, is_target: bool
) -> TypedColumn:
    """Return a column with its type."""
    if request.type in ("image", "sequence"):
        raise BadData(f"column {name!r} has one value for each row, so it cannot be of type {request.type}")
    return read_column(name, columns, request, table, is_target=is_target)


def _role(
    name: str,
    columns: Mapping[str, Array],
    kind: ColumnType,
    requested: ColumnRole | None,
    target: str,
    features: Sequence[str] | None,
) -> ColumnSchema:
    if name == target:
        return ColumnSchema("target", kind)
    if features is not None:
        if name in features:
            return ColumnSchema("feature", kind)
        role = "ignore" if requested in (None, "feature", "target") else requested
        return ColumnSchema(role, kind, "it was not chosen as a feature")
    if requested is not None:
        reason = None if requested == "feature" else f"it was given the role {requested}"
        return ColumnSchema("ignore" if requested == "target" else requested, kind, reason)
    distinct_words = words(columns, name)
    column = columns[name] if distinct_words is None else distinct_words.values
    if is_list_column(column):
        return ColumnSchema("ignore", kind, "it has lists, which are for a target with several labels")
    repeats = distinct_words is not None and len(distinct_words.values) < len(distinct_words.codes)
    if not repeats and (reason := _identifies_rows(name, column, kind)):
        return ColumnSchema("id", kind, reason)
    # Nearly every column has a value in its first rows, so the whole of it is seldom searched.
    if all(missing(part).all() for part in (column[:FIRST_ROWS], column)):
        return ColumnSchema("ignore", kind, "it has no value in any row")
    return ColumnSchema("feature", kind)


def _identifies_rows(name: str, column: Array, kind: ColumnType) -> str | None:
    """Return why a column identifies rows instead of describing them; None if it does not."""
    if len(column) < MIN_ROWS_OF_IDS or kind not in ("integer", "category") or missing(column).any():
        return None
    # Whole numbers that all differ may be a measure; of words that all differ nothing can be learnt.
    if kind == "integer" and not (ID_NAME.search(name) or ID_NAME_IN_CAMEL_CASE.search(name)):
        return None
    # Nearly every column repeats a value in its first rows, so the whole of it is seldom compared.
    if any(len(np.unique(part)) < len(part) for part in (column[:FIRST_ROWS], column)):
        return None
    return "it has another value in every row, so it identifies rows"
