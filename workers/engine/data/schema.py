"""Proposes a role and a type for each table column, as far as a person has not chosen them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.data.dates.facts import DateFacts
from workers.engine.data.encode import choose_target, missing, some
from workers.engine.data.findings.identifiers import NO_IDENTIFIER, Judgement, judge, judge_read_numbers
from workers.engine.data.findings.writings import Group, find_groups, merge
from workers.engine.data.labels import is_list_column
from workers.engine.data.reading.column_types import TypedColumn
from workers.engine.data.reading.exact_numbers import EqualDecimals, equal_decimals_of
from workers.engine.data.reading.typed_columns import read_column
from workers.engine.data.spilled import SpilledColumns, editable, head, words
from workers.engine.data.table import Table
from workers.engine.data.texts import is_text
from workers.engine.errors import BadData

FIRST_ROWS = 10_000


@dataclass(frozen=True)
class ColumnSchema:
    """A column's role and type, why it is left out of the features, and how its texts were read.

    Attributes:
        role: the role.
        type: the type.
        reason: why it is no feature; None for the others.
        dates: how its values are dates.
        judgement: whether it identifies rows, unless a person chose its role.
        has_chosen_type: whether a person chose its type.
        merge_labels: whether a person chose to merge values that differ in their writing only.
        merged: these values.
        number_format: how its texts were numbers.
        gap_words: the words that were missing values.
        gap_counts: these words among numbers and dates, with the number of their rows.
        misfits: the values that do not have its type.
    """

    role: ColumnRole
    type: ColumnType
    reason: str | None = None
    dates: DateFacts | None = None
    judgement: Judgement = NO_IDENTIFIER
    has_chosen_type: bool = False
    merge_labels: bool | None = None
    merged: tuple[Group, ...] = ()
    number_format: NumberFormat | None = None
    gap_words: tuple[str, ...] | None = None
    gap_counts: tuple[tuple[str, int], ...] = ()
    misfits: Misfits | None = None


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
    task: Task | None = None,
) -> Schema:
    """Return each column's role and type.

    Args:
        table: as it was read; its columns have one value for each row.
        target: the target's name; None for the column whose role was requested, or a usual name.
        features: the feature names; None for all columns that are not left out for a reason.
        requests: roles and types that a person chose.
        task: the kind of prediction that a person chose.

    Raises:
        BadData: a column does not exist, or its values do not have the requested type.
    """
    chosen = {request.name: request for request in requests}
    for name in (*chosen, *(features or ())):
        if name not in table.columns:
            raise BadData(f"no column {name!r}; there are {some(list(table.columns))}")
    targets = [request.name for request in requests if request.role == "target"]
    target = choose_target(table, target or (targets[0] if targets else None))
    read = _ReadColumns(table, target, features, task, editable(table.columns), dict(table.equal_decimals))
    for name in table.columns:
        read.add(name, chosen.get(name, ColumnRequest(name=name)))
    _check_lone_roles(read.schema, requests, features)
    return Schema(
        replace(table, columns=read.columns, equal_decimals=read.decimals),
        _with_feature(read.schema, target),
        target,
        tuple(read.findings),
        tuple(read.offers),
    )


@dataclass(frozen=True)
class _ReadColumns:
    """The columns that have their types and roles so far.

    Attributes:
        table: as it was read.
        target: the target column's name.
        features: the feature names; None for all columns that are not left out for a reason.
        task: the kind of prediction that a person chose.
        columns: those of the table, which get the values of their types.
        decimals: two different decimals that are the same number, by column.
        schema: role and type by name.
        findings: sentences about how columns were read.
        offers: other readings.
    """

    table: Table
    target: str
    features: Sequence[str] | None
    task: Task | None
    columns: dict[str, Array] | SpilledColumns
    decimals: dict[str, EqualDecimals]
    schema: dict[str, ColumnSchema] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)

    def add(self, name: str, request: ColumnRequest) -> None:
        """Read a column, and propose its role."""
        column = _typed(name, self.columns, request, self.table, is_target=name == self.target)
        if name == self.target and self.task == "regression" and column.type in ("category", "text"):
            # Texts that may be numbers are some, since these are to be predicted.
            request = ColumnRequest(name=name, role=request.role, type="number", gap_words=request.gap_words)
            column = _typed(name, self.columns, request, self.table, is_target=True)
        is_converted = column.type == "number" and column.values is not None
        if is_converted and (pair := _equal_decimals(name, self.columns)) is not None:
            self.decimals[name] = pair
        if column.values is not None:
            self.columns[name] = column.values
        if request.role != "ignore":
            self.findings.extend(column.findings)
            self.offers.extend(column.offers)
        groups = merged_groups(self.columns, request, column.type)
        if groups:
            self.columns[name] = merge(self.columns, name, groups)
        is_index = name in self.table.index
        described = _role(
            name, self.columns, column.type, request.role, self.target, self.features, is_index=is_index
        )
        if column.misfits is not None and request.role is None and described.role == "feature":
            described = self._with_role_of_words(name, described)
        self.schema[name] = replace(
            described,
            number_format=column.number_format,
            gap_words=column.gap_words,
            gap_counts=column.gap_counts,
            misfits=column.misfits,
            dates=column.dates,
            has_chosen_type=request.type is not None,
            merge_labels=request.merge_labels,
            merged=groups,
        )

    def _with_role_of_words(self, name: str, column: ColumnSchema) -> ColumnSchema:
        """Return a column that identified rows by its words with this role, also as numbers.

        A person who reads it as numbers changes its type alone.
        """
        if self.features is not None or column.type not in ("number", "integer"):
            return column
        judgement = judge_read_numbers(self.columns[name])
        if judgement.reason is None:
            return column
        return replace(column, role="id", reason=judgement.reason, judgement=judgement)


def _with_feature(schema: dict[str, ColumnSchema], target: str) -> dict[str, ColumnSchema]:
    """Return roles and types by name, of which one at least is a feature.

    Raises:
        BadData: none can be.
    """
    if any(column.role == "feature" for column in schema.values()):
        return schema
    # A table may have a single column beside its target.
    schema = {name: _as_feature(column) for name, column in schema.items()}
    if any(column.role == "feature" for column in schema.values()):
        return schema
    if len(schema) == 1:
        raise BadData(
            f"the table has only one column, {target!r}, and a model needs the target and a feature at "
            "least. If the file has several, name the delimiter between them"
        )
    reasons = [f"{name!r}: {column.reason}" for name, column in schema.items() if column.reason]
    raise BadData(f"no column can be used as a feature; {some(reasons)}")


def merged_groups(
    columns: Mapping[str, Array], request: ColumnRequest, kind: ColumnType
) -> tuple[Group, ...]:
    """Return the values of a column that a person chose to merge.

    Raises:
        BadData: the column has no categories.
    """
    if not request.merge_labels:
        return ()
    if kind != "category" and not is_list_column(columns[request.name]):
        raise BadData(
            f"column {request.name!r} is of type {kind}, and merge_labels is for categories; choose the type "
            "category"
        )
    return find_groups(columns, request.name, kind)


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


def _equal_decimals(name: str, columns: Mapping[str, Array]) -> EqualDecimals | None:
    """Return two decimals of a column of texts that are the same number; None without any."""
    if (distinct := words(columns, name)) is not None:
        return equal_decimals_of(distinct.values)
    return equal_decimals_of(columns[name]) if is_text(columns[name]) else None


def _role(
    name: str,
    columns: Mapping[str, Array],
    kind: ColumnType,
    requested: ColumnRole | None,
    target: str,
    features: Sequence[str] | None,
    *,
    is_index: bool,
) -> ColumnSchema:
    if name == target:
        return ColumnSchema("target", kind)
    if features is not None:
        if name in features:
            return ColumnSchema("feature", kind)
        other = "ignore" if requested in (None, "feature", "target") else requested
        return ColumnSchema(other, kind, "it was not chosen as a feature")
    if requested is not None:
        reason = None if requested == "feature" else f"it was given the role {requested}"
        return ColumnSchema("ignore" if requested == "target" else requested, kind, reason)
    # Dates are information, also as labels.
    if is_index and kind != "date":
        return ColumnSchema("id", kind, "it has the labels of the rows, for which the file has no name")
    distinct_words = words(columns, name)
    column = columns[name] if distinct_words is None else distinct_words.values
    if is_list_column(column):
        return ColumnSchema("ignore", kind, "it has lists, which are for a target with several labels")
    # Nearly every column has a value in its first rows, so the whole of it is seldom searched.
    if all(missing(part).all() for part in (column[:FIRST_ROWS], column)):
        return ColumnSchema("ignore", kind, "it has no value in any row")
    judgement = judge(name, column if distinct_words is None else distinct_words, kind)
    proposed: ColumnRole = "feature" if judgement.reason is None else "id"
    return ColumnSchema(proposed, kind, judgement.reason, judgement=judgement)


def _as_feature(column: ColumnSchema) -> ColumnSchema:
    """Return a column as a feature if its values alone made it an identifier."""
    if column.judgement.reason is None or column.judgement.is_named:
        return column
    judgement = Judgement(doubt=column.judgement.reason)
    return replace(column, role="feature", reason=None, judgement=judgement)
