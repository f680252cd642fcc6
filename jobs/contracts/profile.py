"""Declares the profile of a dataset version, which a profile task writes and plans and the engine read."""

from typing import Any, Literal

from pydantic import Field

from jobs.contracts.base import Frozen
from jobs.contracts.data import Task

DataKind = Literal["vector", "image"]


class Column(Frozen):
    """One column (or one array, for images) with the statistics that a page shows."""

    name: str
    dtype: str
    shape: tuple[int, ...] = Field(default=(), description="Of one row; empty for a scalar.")
    missing: int = 0
    distinct: int | None = None
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    histogram: tuple[int, ...] = Field(default=(), description="Counts in 20 equal bins from min to max.")


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
    outputs: int = Field(description="The number of classes, or of target columns for regression.")
    class_labels: tuple[str, ...] = ()
    class_counts: tuple[int, ...] = ()
    columns: tuple[Column, ...]
    duplicates: int = Field(default=0, description="Rows that repeat an earlier row.")
    findings: tuple[str, ...] = Field(
        default=(), description="Sentences on leakage, imbalance and constants."
    )


class Profile(DataSchema):
    """Schema, statistics and preview of a dataset version."""

    rows: int
    preview: tuple[dict[str, Any], ...] = Field(description="The first rows; images are nested lists.")

    def schema_alone(self) -> DataSchema:
        """Return the schema and statistics without any row."""
        return DataSchema.model_construct(**{name: getattr(self, name) for name in DataSchema.model_fields})
