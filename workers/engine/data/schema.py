"""Proposes the role and the type of each column of a table, as far as a person has not chosen them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jobs.contracts.columns import ColumnRequest, ColumnRole, ColumnType
from workers.engine.arrays import Array
from workers.engine.data.column_types import convert, recognize
from workers.engine.data.encode import choose_target, missing, some
from workers.engine.data.table import Table
from workers.engine.errors import BadData

MIN_ROWS_OF_IDS = 20
"""In fewer rows, all values of a column may differ by chance."""
ID_NAME = re.compile(r"(^|[ _.-])(id|uuid|guid|key|index|row|nr|no|number)$|^unnamed: 0$", re.IGNORECASE)
ID_NAME_IN_CAMEL_CASE = re.compile(r"[a-z](Id|ID|Key|Index|Nr|No)$")


@dataclass(frozen=True)
class ColumnSchema:
    """Role and type of a column, and why it is left out of the features."""

    role: ColumnRole
    type: ColumnType
    reason: str | None = None


@dataclass(frozen=True)
class Schema:
    """A table whose columns have values of their types.

    Attributes:
        table: the columns.
        columns: role and type by name.
        target: name of the target column.
    """

    table: Table
    columns: Mapping[str, ColumnSchema]
    target: str

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in the order of the table."""
        return tuple(name for name, column in self.columns.items() if column.role == "feature")


def is_tabular(table: Table) -> bool:
    """Return whether all columns have one value for each row."""
    return all(column.ndim == 1 for column in table.columns.values())


def propose(
    table: Table,
    *,
    target: str | None,
    features: Sequence[str] | None,
    requests: Sequence[ColumnRequest] = (),
) -> Schema:
    """Return role and type of each column.

    Args:
        table: as it was read, with columns of one value for each row.
        target: name of the target; None for the column whose role was requested, or a usual name.
        features: names of the features; None for all columns that are not left out for a reason.
        requests: roles and types that a person chose.

    Raises:
        BadData: a column does not exist, or its values are not of the requested type.
    """
    chosen = {request.name: request for request in requests}
    for name in (*chosen, *(features or ())):
        if name not in table.columns:
            raise BadData(f"no column {name!r}; there are {some(list(table.columns))}")
    wanted = [request.name for request in requests if request.role == "target"]
    target = choose_target(table, target or (wanted[0] if wanted else None))
    typed: dict[str, Array] = {}
    schema: dict[str, ColumnSchema] = {}
    for name, column in table.columns.items():
        request = chosen.get(name, ColumnRequest(name=name))
        typed[name], kind = _typed(name, column, request.type)
        schema[name] = _role(name, typed[name], kind, request.role, target, features)
    if not any(column.role == "feature" for column in schema.values()):
        reasons = [f"{name!r}: {column.reason}" for name, column in schema.items() if column.reason]
        raise BadData(f"no column can be used as a feature; {some(reasons)}")
    return Schema(replace(table, columns=typed), schema, target)


def _typed(name: str, column: Array, kind: ColumnType | None) -> tuple[Array, ColumnType]:
    if kind is None:
        return recognize(column)
    if kind in ("image", "sequence"):
        raise BadData(f"column {name!r} has one value for each row, so it cannot be of type {kind}")
    return convert(column, kind, name), kind


def _role(
    name: str,
    column: Array,
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
    if reason := _identifies_rows(name, column, kind):
        return ColumnSchema("id", kind, reason)
    if not len(np.flatnonzero(~missing(column))):
        return ColumnSchema("ignore", kind, "it has no value in any row")
    return ColumnSchema("feature", kind)


def _identifies_rows(name: str, column: Array, kind: ColumnType) -> str | None:
    """Return why a column identifies rows instead of describing them; None if it does not."""
    if len(column) < MIN_ROWS_OF_IDS or kind not in ("integer", "category") or missing(column).any():
        return None
    if len(np.unique(column)) < len(column):
        return None
    # Whole numbers that all differ may be a measure; of words that all differ nothing can be learnt.
    if kind == "integer" and not (ID_NAME.search(name) or ID_NAME_IN_CAMEL_CASE.search(name)):
        return None
    return "it has another value in every row, so it identifies rows"
