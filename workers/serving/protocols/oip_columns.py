"""Reads table rows from Open Inference Protocol tensors, for versions with a pipeline.

Each column is one tensor, `BYTES` for categories, texts and dates. If a version takes
windows, an instance is a row in each tensor.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.spec.data.columns import ColumnType
from jobs.spec.signature import Signature
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue
from workers.model_process.dtypes import TYPES
from workers.model_process.errors import BadRequest
from workers.serving.protocols.table_rows import read_columns

Array = npt.NDArray[Any]

_BYTES = "BYTES"
_NUMBERS = {element.inference: element.numpy for element in TYPES.values()}
_DATATYPES: dict[ColumnType, str] = {"number": "FP64", "integer": "INT64", "boolean": "BOOL"}
"""Those of all other types are texts."""


def names_columns(tensors: list[dict[str, Any]], signature: Signature, pipeline: Pipeline) -> bool:
    """Return whether the tensors in an infer request are columns, not the model's input."""
    name = signature.inputs[0].name
    return name in pipeline.columns or any(tensor.get("name") != name for tensor in tensors)


def read_tensors(tensors: list[dict[str, Any]], raw: memoryview, pipeline: Pipeline) -> Array:
    """Return the model's input for the columns in an infer request, (rows, …) float32.

    Args:
        tensors: each column's name, shape, datatype and data.
        raw: the binary tensors' bytes, in order.
        pipeline: the version's.

    Raises:
        BadRequest: a tensor does not fit its column.
        BodyTooLarge: the rows become too many numbers.
    """
    columns: dict[str, object] = {}
    for tensor in tensors:
        name = tensor.get("name")
        if not isinstance(name, str) or name not in pipeline.columns:
            names = ", ".join(list(pipeline.columns)[:20])
            raise BadRequest(f"unexpected input {name!r}; the columns are {names}")
        if name in columns:
            raise BadRequest(f"input {name!r} is given twice")
        if pipeline.features.window is not None:
            columns[name], raw = _read_windows_of(tensor, name, raw, pipeline.rows_of_window)
            continue
        columns[name], raw = _read_tensor(tensor, name, raw, is_image=pipeline.columns[name] == "image")
    if raw:
        raise BadRequest(f"{len(raw)} bytes follow the last binary tensor")
    try:
        return read_columns(columns, pipeline)
    except BadValue as error:
        raise BadRequest(str(error)) from None


def _read_windows_of(
    tensor: dict[str, Any], name: str, raw: memoryview, size: int
) -> tuple[list[object], memoryview]:
    """Return a column's values in each window as lists, and the bytes after the tensor."""
    shape, data = tensor.get("shape"), tensor.get("data")
    is_shape = isinstance(shape, list) and len(shape) == 2 and all(type(length) is int for length in shape)
    if not isinstance(shape, list) or not is_shape or shape[0] < 0 or shape[1] != size:
        raise BadRequest(f"input {name!r}: shape must be [instances, {size}]")
    if isinstance(data, list) and all(isinstance(window, list) and len(window) == size for window in data):
        data = [value for window in data for value in window]
    flat = {**tensor, "shape": [shape[0] * size], "data": data}
    values, raw = _read_tensor(flat, name, raw, is_image=False)
    return [values[start : start + size] for start in range(0, len(values), size)], raw


def _read_tensor(
    tensor: dict[str, Any], name: str, raw: memoryview, *, is_image: bool
) -> tuple[list[object], memoryview]:
    """Return a tensor's values and the bytes after it; images are bytes, or base64 in JSON."""
    shape, datatype = tensor.get("shape"), tensor.get("datatype")
    # `type(...) is int`, because JSON's true is an instance of int in Python.
    if (
        not isinstance(shape, list)
        or len(shape) == 0
        or shape[1:] not in ([], [1])
        or type(shape[0]) is not int
    ):
        raise BadRequest(f"input {name!r}: shape must be [rows] or [rows, 1]")
    if datatype != _BYTES and datatype not in _NUMBERS:
        raise BadRequest(f"input {name!r}: datatype {datatype!r} is unknown")
    rows: int = shape[0]
    parameters = tensor.get("parameters")
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    if size is None:
        values = tensor.get("data")
        if isinstance(values, list) and values and all(isinstance(v, list) and len(v) == 1 for v in values):
            values = [value[0] for value in values]
        if not isinstance(values, list) or len(values) != rows:
            raise BadRequest(f"input {name!r}: data must be a list of {rows} values")
        if is_image:
            values = [{"b64": value} if isinstance(value, str) else value for value in values]
        return values, raw
    if type(size) is not int or not 0 <= size <= len(raw):
        raise BadRequest(f"input {name!r}: binary_data_size {size!r} does not fit the body")
    if datatype != _BYTES:
        values = _numbers(raw[:size], _NUMBERS[datatype], name)
    elif is_image:
        values = list(_byte_strings(raw[:size], name))
    else:
        values = _texts(raw[:size], name)
    if len(values) != rows:
        raise BadRequest(f"input {name!r}: {len(values)} values do not fit shape {shape}")
    return values, raw[size:]


def _numbers(raw: memoryview, dtype: np.dtype[Any], name: str) -> list[object]:
    if len(raw) % dtype.itemsize:
        raise BadRequest(f"input {name!r}: {len(raw)} bytes are no whole number of values")
    values: list[object] = np.frombuffer(raw, dtype.newbyteorder("<")).tolist()
    return values


def _texts(raw: memoryview, name: str) -> list[object]:
    texts: list[object] = []
    for number, value in enumerate(_byte_strings(raw, name), start=1):
        try:
            texts.append(str(value, "utf-8"))
        except UnicodeDecodeError:
            raise BadRequest(f"input {name!r}: text {number} is not UTF-8") from None
    return texts


def _byte_strings(raw: memoryview, name: str) -> Iterator[bytes]:
    """Yield byte strings, each of which follows its length in four bytes."""
    while raw:
        length = int.from_bytes(raw[:4], "little")
        if len(raw) < 4 + length:
            raise BadRequest(f"input {name!r}: a text ends after the binary data")
        yield bytes(raw[4 : 4 + length])
        raw = raw[4 + length :]


def column_tensors(signature: Signature) -> list[dict[str, object]]:
    """Return the columns as tensors for the metadata."""
    shape = [-1] if signature.window is None else [-1, signature.window.rows]
    return [
        {"name": column.name, "datatype": _DATATYPES.get(column.type, _BYTES), "shape": shape}
        for column in signature.columns
    ]
