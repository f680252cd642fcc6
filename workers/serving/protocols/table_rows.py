"""Reads table rows by column name, for versions whose file has a pipeline.

A body has objects as rows (`instances`) or lists by column (`inputs`). An instance for a version that takes
windows is a list of rows: `{"rows": [{…}, {…}]}`, and by column a list of values.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy.typing as npt

from jobs.spec.signature import Signature
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue
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
ROWS = "rows"
"""The key of the rows of a window."""
_KEY = re.compile(rb'"\s*:')


def has_rows(request: Mapping[str, Any], signature: Signature, pipeline: Pipeline) -> bool:
    """Return whether a predict request's body names columns, not the model's input."""
    rows, columns = request.get("instances"), request.get("inputs")
    first = rows[0] if isinstance(rows, list) and rows else columns
    name = signature.inputs[0].name
    return isinstance(first, dict) and (first.keys() != {name} or name in pipeline.columns)


def read_rows(body: Body, request: Mapping[str, Any], pipeline: Pipeline) -> Array:
    """Return the model's input for the rows in a predict body, (rows, …) float32.

    Args:
        body: as it was received.
        request: the object in it.
        pipeline: the version's.

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
        return read_columns(request["inputs"], pipeline)
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
    """Check that no object in a body has a key twice: the parser has kept the last one."""
    rows = request.get("instances", ())
    objects = [request, *rows] if "instances" in request else [request, request["inputs"]]
    keys = sum(len(item) for item in objects if isinstance(item, dict))
    # Images and the rows of windows are objects inside of these.
    keys += sum(len(value) for value in _values(objects) if isinstance(value, dict))
    # Texts may contain these characters too.
    if keys != sum(1 for _ in _KEY.finditer(body)):
        parse_unique(body)


def _values(objects: list[Any]) -> Iterator[object]:
    """Yield the values in rows, and in columns."""
    for item in objects[1:]:
        if isinstance(item, dict):
            for value in item.values():
                yield from value if isinstance(value, list) else (value,)


def read_columns(columns: Mapping[str, object], pipeline: Pipeline) -> Array:
    """Return the model's input for lists of values by column, (rows, …) float32.

    Raises:
        BadRequest: a column is no list, or they have different numbers of rows.
        BadValue: a value does not fit its column.
        BodyTooLarge: the rows become too many numbers.
    """
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
    """Return a column's values in the last `size` rows of each window, one after the other."""
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


def size_of(pipeline: Pipeline) -> int:
    """Return how many columns there are, with wide ones counted several times.

    An image counts as so many that another process reads every request: a body of 2 KiB may be an image of
    millions of pixels.
    """
    if pipeline.features.image is not None:
        return MAX_QUICK_VALUES
    return len(pipeline.columns) + pipeline.features.width // POSITIONS_PER_COLUMN


def is_quick(body: Body, size: int, *, raw: int = 0) -> bool:
    """Return whether a body's rows are so few that they are read at once.

    Args:
        body: as it was received.
        size: see `size_of`; 0 without a pipeline.
        raw: how many of its bytes are binary tensors, of which each may be a row.
    """
    # One object holds only numbers, which need no pipeline.
    if size == 0 or (raw == 0 and body.count(b"{") == 1):
        return True
    # Rows are objects, or as many values in each list by column. An escape may hide the name of the latter.
    are_objects = b'"inputs"' not in body and b"\\" not in body
    rows = raw + (body.count(b"{") if are_objects else body.count(b",") + 1)
    return len(body) <= MAX_QUICK_BYTES and size * (rows + VALUES_PER_COLUMN) <= MAX_QUICK_VALUES
