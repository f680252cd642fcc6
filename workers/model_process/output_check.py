"""Compares the outputs that a model process has sent with its model's signature."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.spec.signature import TensorSpec

Array = npt.NDArray[Any]


def problem_of(outputs: Sequence[Array], specs: Sequence[TensorSpec], rows: int) -> str:
    """Return why these are not a batch's outputs; an empty text if they are.

    Args:
        outputs: the arrays that were sent.
        specs: the signature's outputs.
        rows: the batch's row count.
    """
    if len(outputs) != len(specs):
        return f"{len(outputs)} outputs instead of {len(specs)}"
    for output, spec in zip(outputs, specs, strict=True):
        if not _has_type(output, spec):
            return f"{spec.name!r} of type {output.dtype} instead of {spec.dtype}"
        shape = (rows, *spec.shape)
        if not _has_shape(output, shape):
            shape_text = ", ".join("any" if size is None else str(size) for size in shape)
            return f"{spec.name!r} of shape {list(output.shape)} instead of [{shape_text}]"
    return ""


def _has_type(output: Array, spec: TensorSpec) -> bool:
    # Numbers are computed in 32 bits where the signature has 64.
    return output.dtype.kind in "buif" and output.dtype.itemsize <= np.dtype(spec.dtype).itemsize


def _has_shape(output: Array, shape: Sequence[int | None]) -> bool:
    return output.ndim == len(shape) and all(
        size in (None, actual_size) for size, actual_size in zip(shape, output.shape, strict=True)
    )
