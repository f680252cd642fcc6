"""Defines the supported element types and their names in each protocol."""

from typing import NamedTuple

import numpy as np


class ElementType(NamedTuple):
    """One element type: NumPy's, TensorFlow's and the Open Inference Protocol's name."""

    numpy: np.dtype[np.generic]
    tensorflow: str
    inference: str


TYPES = {
    name: ElementType(np.dtype(name), tensorflow, inference)
    for name, tensorflow, inference in (
        ("bool", "DT_BOOL", "BOOL"),
        ("uint8", "DT_UINT8", "UINT8"),
        ("uint16", "DT_UINT16", "UINT16"),
        ("uint32", "DT_UINT32", "UINT32"),
        ("uint64", "DT_UINT64", "UINT64"),
        ("int8", "DT_INT8", "INT8"),
        ("int16", "DT_INT16", "INT16"),
        ("int32", "DT_INT32", "INT32"),
        ("int64", "DT_INT64", "INT64"),
        ("float32", "DT_FLOAT", "FP32"),
        ("float64", "DT_DOUBLE", "FP64"),
    )
}
# JSON and the clients of most languages lack these types.
_SERVED_AS = {"float16": "float32", "bfloat16": "float32"}
# JAX computes in 32 bits.
_COMPUTED_AS = {"int64": "int32", "uint64": "uint32", "float64": "float32"}


def served_dtype(name: str) -> str:
    """Return the dtype in which a tensor with dtype `name` is transferred.

    Raises:
        ValueError: the dtype is not supported.
    """
    served = _SERVED_AS.get(name, name)
    if served not in TYPES:
        raise ValueError(f"tensors of {name} cannot be served; {', '.join(TYPES)} can")
    return served


def computed_dtype(name: str) -> str:
    """Return the dtype in which a tensor that is transferred as `name` is computed."""
    return _COMPUTED_AS.get(name, name)
