"""Copies Keras variables' values to the host and back."""

from typing import Any

import numpy as np

from workers.engine.arrays import Array
from workers.engine.errors import BadCheckpoint


def values(variables: Any) -> list[Array]:
    """Return the variables' values, copied as NumPy arrays."""
    return [np.array(variable.value) for variable in variables]


def assign(variables: Any, arrays: list[Array]) -> None:
    """Assign each array to the variable at the same position.

    Raises:
        BadCheckpoint: the shapes differ, so the arrays belong to another model.
    """
    # All shapes are compared first, so a model of other shapes is not changed in part.
    shapes, stored = [tuple(v.shape) for v in variables], [a.shape for a in arrays]
    if shapes != stored:
        raise BadCheckpoint(f"the checkpoint holds shapes {stored[:8]}…, the model has {shapes[:8]}…")
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
