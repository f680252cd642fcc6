"""Declares a model's signature: names, types and shapes of its inputs and outputs."""

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.columns import ColumnType
from jobs.spec.sections.data import MAX_HORIZON, MAX_WINDOW

Verb = Literal["classify", "regress"]
"""The requests of TensorFlow Serving for models with one score for each class, or with one number."""

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


def answers(verb: Verb, signature: Signature, class_labels: Sequence[str]) -> bool:
    """Return whether a version's only output is a score for each of its classes, or one number."""
    widths = {math.prod(size or 0 for size in spec.shape) for spec in signature.outputs}
    single = len(signature.outputs) == 1 and len(signature.outputs[0].shape) <= 1
    # A binary model may return only the probability of its second class.
    of_classes = {len(class_labels), 1 if len(class_labels) == 2 else 0} - {0}
    return single and widths <= ({1} if verb == "regress" else of_classes)


def takes_flat_features(signature: Signature) -> bool:
    """Return whether each input can be sent as a flat list, as classify and regress requests have them."""
    return not any(None in spec.shape and len(spec.shape) > 1 for spec in signature.inputs)
