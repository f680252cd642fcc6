"""Reads the parts that all tensors of an Open Inference Protocol request have: shape, datatype, raw bytes.

Beside the protocol's datatypes there is BF16, which Triton and KServe have too. FP16 and BF16 are accepted
wherever a float is.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.model_process.dtypes import TYPES
from workers.model_process.errors import BadRequest

Array = npt.NDArray[Any]
Tensor = dict[str, Any]

HEADER_LENGTH = "Inference-Header-Content-Length"
"""The header with the bytes of JSON that precede raw tensors."""
BYTES, BOOL, HALF, BRAIN = "BYTES", "BOOL", "FP16", "BF16"
SHORT_FLOATS = (HALF, BRAIN)
NUMBERS = {element.inference: element.numpy for element in TYPES.values()} | {HALF: np.dtype(np.float16)}
"""NumPy has all numbers but BF16."""
_MAX_SIZE = 2**31
_SHARED_MEMORY = "shared_memory_region"


def parameters_of(holder: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request, a tensor or an output.

    Raises:
        BadRequest: they are no object, or ask for shared memory.
    """
    parameters = holder.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise BadRequest(f"'parameters' must be an object, not {type(parameters).__name__}")
    if _SHARED_MEMORY in parameters:
        raise BadRequest(f"the parameter {_SHARED_MEMORY!r} is not supported: send the tensor in the request")
    return parameters


def shape_of(tensor: Tensor, name: str) -> list[int]:
    """Return a tensor's shape.

    Raises:
        BadRequest: it is no list of whole numbers.
    """
    shape = tensor.get("shape")
    # `type(...) is int`, because JSON's true is an instance of int in Python.
    if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < _MAX_SIZE for size in shape):
        raise BadRequest(f"input {name!r}: shape must be a list of whole numbers")
    return shape


def is_number(datatype: object) -> bool:
    """Return whether a datatype is one of numbers or booleans."""
    return isinstance(datatype, str) and (datatype in NUMBERS or datatype == BRAIN)


def item_bytes(datatype: str) -> int:
    """Return the bytes of one number."""
    return 2 if datatype == BRAIN else NUMBERS[datatype].itemsize


def take_raw(tensor: Tensor, name: str, raw: memoryview) -> tuple[memoryview | None, memoryview]:
    """Return a tensor's raw bytes and those after them; None if its values are JSON.

    Args:
        tensor: its description.
        name: its name, for messages.
        raw: the bytes after the JSON that no earlier tensor has.

    Raises:
        BadRequest: there are too few, or it has JSON values too.
    """
    size = parameters_of(tensor).get("binary_data_size")
    if size is None:
        return None, raw
    if "data" in tensor:
        raise BadRequest(f"input {name!r}: send either data or binary_data_size")
    if type(size) is not int or not 0 <= size <= len(raw):
        raise BadRequest(
            f"input {name!r}: binary_data_size {size!r} does not fit the body, which has {len(raw)} more "
            f"bytes after the JSON. The header {HEADER_LENGTH} must have the length of the JSON in bytes"
        )
    return raw[:size], raw[size:]


def numbers_of(raw: memoryview, datatype: str, name: str) -> Array:
    """Return the numbers in raw bytes, in order; BF16 as float32.

    Raises:
        BadRequest: they are no whole number of values, or a boolean is neither 0 nor 1.
    """
    if len(raw) % item_bytes(datatype):
        raise BadRequest(f"input {name!r}: {len(raw)} bytes are no whole number of values")
    if datatype == BRAIN:
        # The upper half of a float32.
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    if datatype == BOOL and np.frombuffer(raw, np.uint8).max(initial=0) > 1:
        raise BadRequest(f"input {name!r}: a BOOL is a byte 0 or 1")
    return np.frombuffer(raw, NUMBERS[datatype].newbyteorder("<"))


def byte_strings(raw: memoryview, name: str) -> Iterator[bytes]:
    """Yield byte strings, each of which follows its length in four bytes.

    Raises:
        BadRequest: one ends after the raw bytes.
    """
    while raw:
        length = int.from_bytes(raw[:4], "little")
        if len(raw) < 4 + length:
            raise BadRequest(f"input {name!r}: a text ends after the binary data")
        yield bytes(raw[4 : 4 + length])
        raw = raw[4 + length :]
