"""Declares the signature of a model: names, types and shapes of its inputs and outputs."""

from pydantic import Field

from jobs.contracts.base import Frozen
from jobs.contracts.columns import ColumnType


class TensorSpec(Frozen):
    """One named tensor. `shape` excludes the batch dimension; None is any size."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


class InputColumn(Frozen):
    """A column of a table from which a pipeline makes the input."""

    name: str
    type: ColumnType


class Signature(Frozen):
    """Inputs and outputs of a served model."""

    inputs: tuple[TensorSpec, ...] = Field(min_length=1)
    outputs: tuple[TensorSpec, ...] = Field(min_length=1)
    # Left out without a value, because the signatures of earlier versions are part of signed releases.
    columns: tuple[InputColumn, ...] = Field(
        default=(),
        exclude_if=lambda columns: not columns,
        description="The columns of a table that the model takes instead of its input.",
    )
