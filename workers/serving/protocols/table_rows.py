"""Reads the rows of a table by the names of its columns, for versions whose file has a pipeline.

TensorFlow Serving's bodies have objects as rows (`instances`) or lists by column (`inputs`); the Open
Inference Protocol has one tensor for each column, `BYTES` for categories, texts and dates.

An instance of a version that takes windows is a list of rows: `{"rows": [{…}, {…}]}`, by column a list of
values, and a row of a tensor.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.spec.data.columns import ColumnType
from jobs.spec.signature import Signature
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue
from workers.model_process.dtypes import TYPES
from workers.model_process.errors import BadRequest, BodyTooLarge
from workers.serving.protocols.json_tensors import Body, parse_unique

Array = npt.NDArray[Any]

MAX_INPUT_BYTES = 256 * 2**20
"""A row of two bytes may become thousands of numbers."""
MAX_QUICK_BYTES = 2 * 2**10
MAX_QUICK_VALUES = 6_000
"""Rows in a longer body, or with more values, are read by another process: a value takes about 0.2 µs."""
VALUES_PER_COLUMN = 25
"""A column takes as long as this many values, however few rows there are."""
POSITIONS_PER_COLUMN = 1_000
"""Positions of the input that take as long as a column."""
BYTES = "BYTES"
ROWS = "rows"
"""The key of the rows of a window."""
DATATYPES: dict[ColumnType, tuple[str, str]] = {
    "number": ("FP64", "DT_DOUBLE"),
    "integer": ("INT64", "DT_INT64"),
    "boolean": ("BOOL", "DT_BOOL"),
}
"""Names of the types in the Open Inference Protocol and in TensorFlow. Those of all other types are texts."""
_KEY = re.compile(rb'"\s*:')
_NUMBERS = {each.inference: each.numpy for each in TYPES.values()}


def has_rows(request: Mapping[str, Any], signature: Signature, pipeline: Pipeline) -> bool:
    """Return whether the body of a predict request names columns, not the model's input."""
    rows, columns = request.get("instances"), request.get("inputs")
    first = rows[0] if isinstance(rows, list) and rows else columns
    name = signature.inputs[0].name
    return isinstance(first, dict) and (first.keys() != {name} or name in pipeline.columns)


def read_rows(body: Body, request: Mapping[str, Any], pipeline: Pipeline) -> Array:
    """Return the model's input for the rows of a predict body, (rows, …) float32.

    Args:
        body: as it was received.
        request: the object in it.
        pipeline: of the version.

    Raises:
        BadRequest: the rows have unknown columns or wrong types, or a key is given twice.
        BodyTooLarge: the rows become too many numbers.
    """
    _check_keys(body, request)
    try:
        if "instances" in request:
            rows = request["instances"]
            if not all(isinstance(row, dict) for row in rows):
                number = next(i for i, row in enumerate(rows) if not isinstance(row, dict))
                raise BadRequest(f"Expecting object but got list at item {number} of input list")
            if pipeline.features.window is not None:
                return _read_windows(rows, pipeline)
            _check_size(len(rows), pipeline)
            return pipeline.of_rows(rows)
        return _from_columns(request["inputs"], pipeline)
    except BadValue as error:
        raise BadRequest(str(error)) from None


def _read_windows(instances: list[dict[str, Any]], pipeline: Pipeline) -> Array:
    windows: list[list[dict[str, Any]]] = []
    for number, instance in enumerate(instances, start=1):
        rows = instance.get(ROWS)
        if len(instance) != 1 or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise BadRequest(
                f'instance {number} must be {{"{ROWS}": [{{…}}, …]}} with {pipeline.rows_of_window} rows of '
                "the table, the oldest first"
            )
        windows.append(rows)
    _check_size(len(windows) * pipeline.rows_of_window, pipeline)
    return pipeline.of_windows(windows)


def _check_keys(body: Body, request: Mapping[str, Any]) -> None:
    """Check that no object of a body has a key twice: the parser has kept the last one."""
    rows = request.get("instances", ())
    objects = [request, *rows] if "instances" in request else [request, request["inputs"]]
    kept = sum(len(each) for each in objects if isinstance(each, dict))
    # Images and the rows of windows are objects inside of these.
    kept += sum(len(value) for value in _values(objects) if isinstance(value, dict))
    # Texts may contain these characters too.
    if kept != sum(1 for _ in _KEY.finditer(body)):
        parse_unique(body)


def _values(objects: list[Any]) -> Iterator[object]:
    """Yield the values of rows, and of columns."""
    for each in objects[1:]:
        if isinstance(each, dict):
            for value in each.values():
                yield from value if isinstance(value, list) else (value,)


def _from_columns(columns: Mapping[str, object], pipeline: Pipeline) -> Array:
    lists = {name: values for name, values in columns.items() if isinstance(values, list)}
    if other := [name for name in columns if name not in lists]:
        raise BadRequest(f"column {other[0]!r} must be a list with one value for each row")
    lengths = {name: len(values) for name, values in lists.items()}
    if len({*lengths.values()}) != 1:
        raise BadRequest(f"columns differ in their number of rows: {lengths}")
    rows = next(iter(lengths.values()))
    if rows == 0:
        raise BadRequest("inputs have no rows")
    size = pipeline.rows_of_window
    _check_size(rows * size, pipeline)
    if pipeline.features.window is None:
        return pipeline.of_json(lists, rows)
    flat = {name: _joined_windows(name, values, size) for name, values in lists.items()}
    return pipeline.of_json(flat, rows * size).reshape(rows, *pipeline.features.input_shape)


def _joined_windows(name: str, windows: list[Any], size: int) -> list[object]:
    """Return the values of a column in the last `size` rows of each window, one after the other."""
    for number, values in enumerate(windows, start=1):
        if not isinstance(values, list) or len(values) < size:
            raise BadRequest(
                f"column {name!r} of instance {number} must be a list of {size} values, that of the oldest "
                "row first"
            )
    lengths = {len(values) for values in windows}
    if len(lengths) > 1:
        raise BadRequest(
            f"the instances of column {name!r} differ in their number of rows: {sorted(lengths)}"
        )
    return [value for values in windows for value in values[len(values) - size :]]


def _check_size(rows: int, pipeline: Pipeline) -> None:
    most = max(MAX_INPUT_BYTES // (4 * pipeline.features.width), 1)
    if rows > most:
        raise BodyTooLarge(f"{rows} rows are too many for one request; send at most {most}")


def names_columns(tensors: list[dict[str, Any]], signature: Signature, pipeline: Pipeline) -> bool:
    """Return whether the tensors of an infer request are columns, not the model's input."""
    name = signature.inputs[0].name
    return name in pipeline.columns or any(tensor.get("name") != name for tensor in tensors)


def read_tensors(tensors: list[dict[str, Any]], raw: memoryview, pipeline: Pipeline) -> Array:
    """Return the model's input for the columns of an infer request, (rows, …) float32.

    Args:
        tensors: name, shape, datatype and data of each column.
        raw: the bytes of binary tensors, in order.
        pipeline: of the version.

    Raises:
        BadRequest: a tensor does not fit its column.
        BodyTooLarge: the rows become too many numbers.
    """
    columns: dict[str, object] = {}
    for tensor in tensors:
        name = tensor.get("name")
        if not isinstance(name, str) or name not in pipeline.columns:
            known = ", ".join(list(pipeline.columns)[:20])
            raise BadRequest(f"unexpected input {name!r}; the columns are {known}")
        if name in columns:
            raise BadRequest(f"input {name!r} is given twice")
        if pipeline.features.window is not None:
            columns[name], raw = _read_windows_of(tensor, name, raw, pipeline.rows_of_window)
            continue
        columns[name], raw = _read_tensor(tensor, name, raw, is_image=pipeline.columns[name] == "image")
    if raw:
        raise BadRequest(f"{len(raw)} bytes follow the last binary tensor")
    try:
        return _from_columns(columns, pipeline)
    except BadValue as error:
        raise BadRequest(str(error)) from None


def _read_windows_of(
    tensor: dict[str, Any], name: str, raw: memoryview, size: int
) -> tuple[list[object], memoryview]:
    """Return the values of a column in each window as lists, and the bytes after the tensor."""
    shape, data = tensor.get("shape"), tensor.get("data")
    is_shape = isinstance(shape, list) and len(shape) == 2 and all(type(each) is int for each in shape)
    if not isinstance(shape, list) or not is_shape or shape[0] < 0 or shape[1] != size:
        raise BadRequest(f"input {name!r}: shape must be [instances, {size}]")
    if isinstance(data, list) and all(isinstance(each, list) and len(each) == size for each in data):
        data = [value for each in data for value in each]
    flat = {**tensor, "shape": [shape[0] * size], "data": data}
    values, raw = _read_tensor(flat, name, raw, is_image=False)
    return [values[start : start + size] for start in range(0, len(values), size)], raw


def _read_tensor(
    tensor: dict[str, Any], name: str, raw: memoryview, *, is_image: bool
) -> tuple[list[object], memoryview]:
    """Return the values of a tensor and the bytes after it; images are bytes, or base64 in JSON."""
    shape, datatype = tensor.get("shape"), tensor.get("datatype")
    # `type(...) is int`, because JSON's true is an instance of int in Python.
    if (
        not isinstance(shape, list)
        or len(shape) == 0
        or shape[1:] not in ([], [1])
        or type(shape[0]) is not int
    ):
        raise BadRequest(f"input {name!r}: shape must be [rows] or [rows, 1]")
    if datatype != BYTES and datatype not in _NUMBERS:
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
    if datatype != BYTES:
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
    found: list[object] = np.frombuffer(raw, dtype.newbyteorder("<")).tolist()
    return found


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


def oip_columns(signature: Signature) -> list[dict[str, object]]:
    """Return the columns as tensors of the Open Inference Protocol's metadata."""
    shape = [-1] if signature.window is None else [-1, signature.window.rows]
    return [
        {"name": column.name, "datatype": DATATYPES.get(column.type, (BYTES,))[0], "shape": shape}
        for column in signature.columns
    ]


def tensorflow_columns(signature: Signature) -> dict[str, dict[str, object]]:
    """Return the columns as tensors of TensorFlow Serving's metadata."""
    sizes = (-1,) if signature.window is None else (-1, signature.window.rows)
    shape = {"dim": [{"size": str(size), "name": ""} for size in sizes], "unknown_rank": False}
    return {
        column.name: {
            "dtype": DATATYPES.get(column.type, ("", "DT_STRING"))[1],
            "tensor_shape": shape,
            "name": f"{column.name}:0",
        }
        for column in signature.columns
    }


def size_of(pipeline: Pipeline) -> int:
    """Return the number of columns, with wide ones counted several times.

    An image counts as so many that another process reads every request: a body of 2 KiB may be an image of
    millions of pixels.
    """
    if pipeline.features.image is not None:
        return MAX_QUICK_VALUES
    return len(pipeline.columns) + pipeline.features.width // POSITIONS_PER_COLUMN


def is_quick(body: Body, size: int, *, raw: int = 0) -> bool:
    """Return whether the rows of a body are so few that they are read at once.

    Args:
        body: as it was received.
        size: see `size_of`; 0 without a pipeline.
        raw: bytes of it that are binary tensors, of which each may be a row.
    """
    # One object holds only numbers, which need no pipeline.
    if size == 0 or (raw == 0 and body.count(b"{") == 1):
        return True
    # Rows are objects, or as many values in each list by column. An escape may hide the name of the latter.
    are_objects = b'"inputs"' not in body and b"\\" not in body
    rows = raw + (body.count(b"{") if are_objects else body.count(b",") + 1)
    return len(body) <= MAX_QUICK_BYTES and size * (rows + VALUES_PER_COLUMN) <= MAX_QUICK_VALUES
