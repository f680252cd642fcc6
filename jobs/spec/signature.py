"""Declares a model's signature: names, types and shapes of its inputs and outputs."""

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.columns import ColumnType
from jobs.spec.sections.data import MAX_HORIZON, MAX_WINDOW

type Shape = tuple[int | None, ...]
"""Sizes of a tensor's axes; null for a size that varies, as the number of rows does."""


class TensorSpec(Frozen):
    """One named tensor. `shape` excludes the batch dimension; None is any size."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


class InputColumn(Frozen):
    """A table column from which a pipeline makes the input."""

    name: str
    type: ColumnType


class InputWindow(Frozen):
    """Table rows that are one instance: from one group, in time order."""

    rows: int = Field(ge=1, le=MAX_WINDOW)
    horizon: int = Field(
        ge=0, le=MAX_HORIZON, description="How many rows after the last one the predicted row is."
    )
    time: str = Field(max_length=500, description="The column that orders the rows, oldest first.")
    group: str | None = Field(
        default=None, max_length=500, description="The column with the same value in all rows of an instance."
    )


class Signature(Frozen):
    """A served model's inputs and outputs."""

    inputs: tuple[TensorSpec, ...] = Field(min_length=1)
    outputs: tuple[TensorSpec, ...] = Field(min_length=1)
    # Left out without a value, because signed releases contain earlier versions' signatures.
    columns: tuple[InputColumn, ...] = Field(
        default=(),
        exclude_if=lambda columns: not columns,
        description="The columns of a table that the model takes instead of its input. A row that is a list "
        "has their values in this order.",
    )
    window: InputWindow | None = Field(
        default=None,
        exclude_if=lambda window: window is None,
        description="Set if an instance is several rows of a table instead of one.",
    )
