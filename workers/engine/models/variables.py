"""Copies Keras variables' values to the host and back."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from workers.engine.arrays import Array
from workers.engine.errors import BadCheckpoint
from workers.engine.models.devices.shards import SpreadArray, is_spread, put


def values(variables: Any) -> list[Array]:
    """Return the variables' values, copied as NumPy arrays."""
    return [np.array(variable.value) for variable in variables]


def are_spread(variables: Iterable[Any]) -> bool:
    """Return whether some variables' values are on several devices."""
    return any(is_spread(variable.value) for variable in variables)


def held(variables: Iterable[Any]) -> list[Any]:
    """Return the variables' values: those on several devices to be read in blocks, others copied to the host.

    The former may be donated by the next training step, so they must be used before.
    """
    current = [variable.value for variable in variables]
    return [SpreadArray(value) if is_spread(value) else np.array(value) for value in current]


def assign(variables: Any, arrays: list[Any]) -> None:
    """Assign each array to the variable at the same position. Each device gets only its part of an array.

    Raises:
        BadCheckpoint: the shapes differ, so the arrays belong to another model.
    """
    # All shapes are compared first, so a model of other shapes is not changed in part.
    shapes, stored = [tuple(v.shape) for v in variables], [tuple(a.shape) for a in arrays]
    if shapes != stored:
        raise BadCheckpoint(f"the checkpoint holds shapes {stored[:8]}…, the model has {shapes[:8]}…")
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(placed(variable, array))


def placed(variable: Any, array: Any) -> Any:
    """Return an array divided over devices like a variable's value; as it is if the variable is on one."""
    if isinstance(array, SpreadArray):
        return array.value
    value = variable.value
    # Keras would put the whole array on the first device before it divides it.
    if is_spread(value) and isinstance(array, np.ndarray) and array.shape == value.shape:
        return put(array, value.sharding, value.dtype)
    return array


def have_values(arrays: Iterable[Any], stored: Iterable[Array]) -> bool:
    """Return whether arrays from `held` have the values of stored ones, bit for bit."""
    return all(
        block.tobytes() == np.asarray(expected[place]).tobytes()
        for value, expected in zip(arrays, stored, strict=True)
        for place, block in (value.placed_blocks() if isinstance(value, SpreadArray) else [((), value)])
    )
