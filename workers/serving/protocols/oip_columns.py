"""Reads table rows from Open Inference Protocol tensors, for versions with a pipeline.

Each column is one tensor, `BYTES` for categories, texts and dates. If a version takes windows, an instance is
a row in each tensor. The columns may also be one tensor with the name of the model's input, whose last axis
has them in order.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.spec.data.columns import ColumnType
from jobs.spec.signature import Signature
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue
from workers.model_process.errors import BadRequest
from workers.serving.protocols.oip_tensors import (
    BRAIN,
    BYTES,
    NUMBERS,
    Tensor,
    byte_strings,
    is_number,
    numbers_of,
    shape_of,
    take_raw,
)
from workers.serving.protocols.table_rows import BASE64, names_of, read_columns

Array = npt.NDArray[Any]

_DATATYPES: dict[ColumnType, str] = {"number": "FP64", "integer": "INT64", "boolean": "BOOL"}
"""Those of all other types are texts."""
_EXACT = {BRAIN: 2**8, "FP16": 2**11, "FP32": 2**24, "FP64": 2**53}
"""Up to these, a float is the only whole number near it."""


def read_tensors(
    tensors: list[Tensor], raw: memoryview, pipeline: Pipeline, input_names: frozenset[str]
) -> Array:
    """Return the model's input for the columns in an infer request, (rows, …) float32.

    Args:
        tensors: each column's name, shape, datatype and data, or one tensor with all columns.
        raw: the binary tensors' bytes, in order.
        pipeline: the version's.
        input_names: see `table_rows.names_of_input`.

    Raises:
        BadRequest: a tensor does not fit its column.
        BodyTooLarge: the rows become too many numbers.
    """
    columns: dict[str, object] = {}
    kinds = pipeline.columns
    for tensor in tensors:
        name = tensor.get("name")
        if len(tensors) == 1 and isinstance(name, str) and name in input_names:
            axes = () if len(kinds) == 1 and _is_without_axis(tensor, pipeline) else (len(kinds),)
            chosen = kinds
        elif not isinstance(name, str) or name not in kinds:
            raise BadRequest(f"unexpected input {name!r}; the columns are {names_of(pipeline)}")
        else:
            axes, chosen = (), {name: kinds[name]}
        if name in columns:
            raise BadRequest(f"input {name!r} is given twice")
        read, raw = _read_tensor(tensor, chosen, axes, raw, pipeline)
        columns |= read
    if raw:
        raise BadRequest(f"{len(raw)} bytes follow the last binary tensor")
    try:
        return read_columns(columns, pipeline)
    except BadValue as error:
        raise BadRequest(str(error)) from None


def _is_without_axis(tensor: Tensor, pipeline: Pipeline) -> bool:
    """Return whether a tensor of the only column lacks the axis of columns."""
    shape = tensor.get("shape")
    return isinstance(shape, list) and len(shape) == (1 if pipeline.features.window is None else 2)


def _read_tensor(
    tensor: Tensor,
    kinds: Mapping[str, ColumnType],
    axes: tuple[int, ...],
    raw: memoryview,
    pipeline: Pipeline,
) -> tuple[Mapping[str, object], memoryview]:
    """Return lists of values by column, and the bytes after the tensor.

    Args:
        tensor: its description.
        kinds: the columns that it has, with their types.
        axes: `(columns,)` if it has an axis of columns, else empty.
        raw: the bytes from its first on.
        pipeline: the version's.
    """
    label, window = str(tensor["name"]), pipeline.features.window
    shape = _shape_in_rows(tensor, label, axes, pipeline)
    datatype = tensor.get("datatype")
    if datatype != BYTES and not is_number(datatype):
        known = ", ".join((*NUMBERS, BRAIN, BYTES))
        raise BadRequest(f"input {label!r}: datatype {datatype!r} is unknown; send one of {known}")
    is_image = pipeline.features.image is not None
    values, raw = _flat_values(tensor, label, shape, raw, is_image=is_image)
    columns: dict[str, object] = {}
    for place, (name, kind) in enumerate(kinds.items()):
        column = values[place :: len(kinds)]
        if isinstance(column, np.ndarray):
            column = _listed(column, datatype, kind, name)
        size = window.rows if window is not None else 0
        columns[name] = (
            [column[start : start + size] for start in range(0, len(column), size)] if size else column
        )
    return columns, raw


def _shape_in_rows(tensor: Tensor, label: str, axes: tuple[int, ...], pipeline: Pipeline) -> list[int]:
    """Return a tensor's shape: rows or instances, rows of a window, and columns.

    Raises:
        BadRequest: it has another shape.
    """
    window = pipeline.features.window
    inner = [*([] if window is None else [window.rows]), *axes]
    accepted = [inner, [1]] if inner == [] else [inner]
    shape = tensor.get("shape")
    is_listed = isinstance(shape, list) and len(shape) > 0 and type(shape[0]) is int and shape[0] >= 0
    if not isinstance(shape, list) or not is_listed or shape[1:] not in accepted:
        first = "rows" if window is None else "instances"
        forms = " or ".join(f"[{', '.join([first, *map(str, form)])}]" for form in accepted)
        order = f", with the columns in this order: {names_of(pipeline)}" if axes else ""
        raise BadRequest(f"input {label!r}: shape must be {forms}{order}")
    return shape_of(tensor, label)


def _flat_values(
    tensor: Tensor, label: str, shape: list[int], raw: memoryview, *, is_image: bool
) -> tuple[list[object] | Array, memoryview]:
    """Return a tensor's values in order and the bytes after it; images are bytes, or base64 in JSON."""
    count, datatype = math.prod(shape), tensor.get("datatype")
    own, rest = take_raw(tensor, label, raw)
    values: list[object] | Array
    if own is None:
        values = _from_json(tensor.get("data"), label, shape)
        if is_image:
            values = [{BASE64: value} if isinstance(value, str) else value for value in values]
        return values, rest
    if datatype != BYTES:
        values = numbers_of(own, str(datatype), label)
    elif is_image:
        values = list(byte_strings(own, label))
    else:
        values = _texts(own, label)
    if len(values) != count:
        raise BadRequest(f"input {label!r}: {len(values)} values do not fit shape {shape}")
    return values, rest


def _from_json(data: object, label: str, shape: list[int]) -> list[object]:
    """Return the values in a list, flat or nested as the shape is."""
    level = data
    if isinstance(data, list) and data and isinstance(data[0], list):
        for size in shape[1:]:
            if not isinstance(level, list) or not all(
                isinstance(item, list) and len(item) == size for item in level
            ):
                raise BadRequest(f"input {label!r}: the lists in data do not fit shape {shape}")
            level = [value for item in level for value in item]
    if not isinstance(level, list) or len(level) != math.prod(shape):
        raise BadRequest(f"input {label!r}: data must be a list of {math.prod(shape)} values")
    return level


def _texts(raw: memoryview, label: str) -> list[object]:
    texts: list[object] = []
    for number, value in enumerate(byte_strings(raw, label), start=1):
        try:
            texts.append(str(value, "utf-8"))
        except UnicodeDecodeError:
            raise BadRequest(f"input {label!r}: text {number} is not UTF-8") from None
    return texts


def _listed(numbers: Array, datatype: object, kind: ColumnType, name: str) -> list[object]:
    """Return raw numbers as values of a column.

    A category is the shortest number that the datatype reads as this one: 0.1, not 0.10000000149.

    Raises:
        BadRequest: it is a category, and the datatype has no different value for other numbers.
    """
    if kind != "category" or numbers.dtype.kind != "f":
        listed: list[object] = numbers.tolist()
        return listed
    finite = numbers[np.isfinite(numbers)].astype(np.float64)
    is_vague = np.abs(finite) > _EXACT[str(datatype)]
    if datatype == BRAIN:
        is_vague |= finite != np.floor(finite)
    if is_vague.any():
        raise BadRequest(
            f"column {name!r} takes words, and {finite[is_vague][0]:.17g} in {datatype} may be a rounded "
            "number; send it as INT64 or BYTES"
        )
    return [float(text) for text in numbers.astype(np.str_).tolist()]


def column_tensors(signature: Signature) -> list[dict[str, object]]:
    """Return the columns as tensors for the metadata."""
    shape = [-1] if signature.window is None else [-1, signature.window.rows]
    return [
        {"name": column.name, "datatype": _DATATYPES.get(column.type, BYTES), "shape": shape}
        for column in signature.columns
    ]
