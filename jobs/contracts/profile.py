"""Declares the profile of a dataset version, which a profile task writes and plans and the engine read."""

from typing import Any, Literal

from pydantic import Field

from jobs.contracts.base import Frozen
from jobs.contracts.columns import ColumnRole, ColumnType
from jobs.contracts.data import Task
from jobs.contracts.dialect import Dialect

DataKind = Literal["vector", "image"]


class Column(Frozen):
    """One column (or one array, for images) with the statistics that a page shows."""

    name: str
    role: ColumnRole | None = Field(default=None, description="Null in profiles of earlier releases.")
    type: ColumnType | None = Field(default=None, description="Null in profiles of earlier releases.")
    reason: str | None = Field(default=None, description="Why the column is left out.")
    dtype: str
    shape: tuple[int, ...] = Field(default=(), description="Of one row; empty for a scalar.")
    missing: int = 0
    distinct: int | None = None
    frequent: int | None = Field(default=None, description="Values of a category in five rows or more.")
    ngrams: int | None = Field(default=None, description="N-grams of a text in two rows or more.")
    values: tuple[str, ...] = Field(default=(), description="The most frequent values of a category.")
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    histogram: tuple[int, ...] = Field(default=(), description="Counts in 20 equal bins from min to max.")


class InputBlock(Frozen):
    """The positions of the input that one column fills."""

    column: str
    start: int
    positions: int
    kind: Literal["number", "plain", "index"] = Field(
        description="number: the model standardizes it; plain: used as it is; index: becomes a vector."
    )
    size: int = Field(default=0, description="Number of indices; 0 for other kinds.")


class DataSchema(Frozen):
    """The columns of a dataset version and their statistics."""

    kind: DataKind
    task: Task
    target: str
    features: tuple[str, ...]
    inputs: tuple[str, ...] = Field(
        default=(), description="Entries of a vector input in order; `colour=red` is a one-hot column."
    )
    input_shape: tuple[int, ...] = Field(description="Of one row as the model takes it.")
    has_pipeline: bool = Field(
        default=False, description="Whether columns become numbers by a pipeline that the training part fits."
    )
    blocks: tuple[InputBlock, ...] = Field(default=(), description="The columns of a pipeline's input.")
    outputs: int = Field(description="The number of classes, or of target columns for regression.")
    class_labels: tuple[str, ...] = ()
    class_counts: tuple[int, ...] = ()
    columns: tuple[Column, ...]
    dialect: Dialect | None = Field(default=None, description="Of tables of text.")
    bad_rows: int = Field(default=0, description="Rows that were left out, because they could not be read.")
    duplicates: int = Field(default=0, description="Rows that repeat an earlier row.")
    findings: tuple[str, ...] = Field(
        default=(), description="Sentences on leakage, imbalance and constants."
    )


class Profile(DataSchema):
    """Schema, statistics and preview of a dataset version."""

    rows: int
    preview: tuple[dict[str, Any], ...] = Field(description="The first rows; images are nested lists.")

    @property
    def embedded(self) -> tuple[InputBlock, ...]:
        """Return the positions that hold an index, which the model turns into a vector."""
        return tuple(block for block in self.blocks if block.kind == "index")

    def schema_alone(self) -> DataSchema:
        """Return the schema and statistics without any row."""
        return DataSchema.model_construct(**{name: getattr(self, name) for name in DataSchema.model_fields})
