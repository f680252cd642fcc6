"""Declares the signature of a model: names, types and shapes of its inputs and outputs."""

from pydantic import Field

from jobs.contracts.base import Frozen


class TensorSpec(Frozen):
    """One named tensor. `shape` excludes the batch dimension; None is any size."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


class Signature(Frozen):
    """Inputs and outputs of a served model."""

    inputs: tuple[TensorSpec, ...] = Field(min_length=1)
    outputs: tuple[TensorSpec, ...] = Field(min_length=1)
