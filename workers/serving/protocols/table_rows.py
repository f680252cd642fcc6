"""Reads table rows, for versions whose file has a pipeline.

A body has rows (`instances`) or lists by column (`inputs`). A row is an object with the columns' names, or a
list of values in the columns' order; if there is one column, it may be the value itself. An instance for a
version that takes windows is a list of rows, or `{"rows": […]}`, and by column a list of values. A list under
the name `input`, or the name of the model's input, has all columns, unless a column has this name.

The values are those of the table. The encoded numbers that a pipeline makes of them are never read: they
could be confused with values.
"""

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from jobs.spec.signature import Signature
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue
from workers.model_process.errors import BadRequest, BodyTooLarge
from workers.serving.protocols.json_tensors import Body, parse_unique, quote_value

Array = npt.NDArray[Any]
Row = dict[str, Any]

MAX_INPUT_BYTES = 256 * 2**20
"""A row of two bytes may become thousands of numbers."""
INPUT = "input"
"""The name that means all columns, whatever the name of the model's input is."""
ROWS = "rows"
"""The key of the rows of a window."""
BASE64 = "b64"
"""The key of the bytes of an image."""
_SHOWN_COLUMNS = 20
_KEY = re.compile(rb'"\s*:')


def names_of_input(signature: Signature, pipeline: Pipeline) -> frozenset[str]:
    """Return the names that mean all columns in their order."""
    return frozenset({INPUT, signature.inputs[0].name} - pipeline.columns.keys())


def read_predict(
    body: Body, request: Mapping[str, Any], pipeline: Pipeline, input_names: frozenset[str]
) -> Array:
    """Return the model's input for the rows in a predict body, (rows, …) float32.

    Args:
        body: as it was received.
        request: the object in it, which has `instances` or `inputs`.
        pipeline: the version's.
        input_names: see `names_of_input`.

    Raises:
        BadRequest: the rows have unknown columns or wrong types, or a key is given twice.
        BodyTooLarge: the rows become too many numbers.
    """
    if "instances" in request:
        instances = request["instances"]
        if not isinstance(instances, list):
            raise BadRequest(f"JSON Value: {quote_value(request)} Expecting 'instances' to be an list/array")
        if not instances:
            raise BadRequest(f"JSON Value: {quote_value(request)} No values in 'instances' array")
        check_keys(body, request)
        return read_instances(instances, pipeline, input_names)
    columns = request["inputs"]
    check_keys(body, request)
    if isinstance(columns, dict) and not _has_only(columns, input_names):
        try:
            return read_columns(columns, pipeline)
        except BadValue as error:
            raise BadRequest(str(error)) from None
    instances = _only_value(columns) if isinstance(columns, dict) else columns
    if not isinstance(instances, list):
        raise BadRequest(
            f"'inputs' must be a list of rows, or an object with the columns {names_of(pipeline)}"
        )
    if not instances:
        raise BadRequest("inputs have no rows")
    return read_instances(instances, pipeline, input_names)


def read_instances(instances: Sequence[Any], pipeline: Pipeline, input_names: frozenset[str]) -> Array:
    """Return the model's input for rows, or for windows of rows, (instances, …) float32.

    Args:
        instances: as this module describes them.
        pipeline: the version's.
        input_names: see `names_of_input`.

    Raises:
        BadRequest: the rows have unknown columns, wrong types or the wrong number of values.
        BodyTooLarge: the rows become too many numbers.
    """
    if all(_has_only(instance, input_names) for instance in instances):
        instances = [_only_value(instance) for instance in instances]
    check_size(len(instances) * pipeline.rows_of_window, pipeline)
    try:
        if pipeline.features.window is not None:
            return pipeline.of_windows(_windows(instances, pipeline))
        return pipeline.of_rows(_rows(instances, pipeline))
    except BadValue as error:
        raise BadRequest(str(error)) from None


def _has_only(value: object, keys: Container[str]) -> bool:
    """Return whether a value is an object with one key, which is one of these."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in keys


def _only_value(value: Mapping[str, Any]) -> Any:
    return next(iter(value.values()))


def _windows(instances: Sequence[Any], pipeline: Pipeline) -> list[list[Row]]:
    windows = []
    for number, instance in enumerate(instances, start=1):
        rows = instance[ROWS] if _has_only(instance, (ROWS,)) else instance
        if not isinstance(rows, list):
            raise BadRequest(
                f'instance {number} must be {{"{ROWS}": [{{…}}, …]}} with {pipeline.rows_of_window} rows of '
                "the table, the oldest first"
            )
        try:
            windows.append(_rows(rows, pipeline))
        except BadRequest as error:
            raise BadRequest(f"instance {number}: {error}") from None
    return windows


def _rows(rows: Sequence[Any], pipeline: Pipeline) -> list[Row]:
    """Return rows as objects with the columns' names.

    Raises:
        BadRequest: some rows are objects and others are not, or a list has the wrong number of values.
    """
    is_named = [isinstance(row, dict) and not _is_image(row, pipeline) for row in rows]
    if any(is_named) and not all(is_named):
        number = is_named.index(not is_named[0])
        forms = "object but got list" if is_named[0] else "value/list but got object"
        raise BadRequest(f"Expecting {forms} at item {number} of input list")
    if all(is_named):
        return list(rows)
    lists = [row if isinstance(row, list) else [row] for row in rows]
    names = [*pipeline.columns]
    for number, values in enumerate(lists, start=1):
        if len(values) != len(names):
            raise BadRequest(_wrong_number(number, len(values), pipeline))
    return [dict(zip(names, values, strict=True)) for values in lists]


def _is_image(value: object, pipeline: Pipeline) -> bool:
    """Return whether a value is the image of the only column, and no row with the name of a column."""
    return (
        pipeline.features.image is not None and BASE64 not in pipeline.columns and _has_only(value, (BASE64,))
    )


def _wrong_number(row: int, count: int, pipeline: Pipeline) -> str:
    values = f"row {row} has {count} value{'' if count == 1 else 's'}"
    if (image := pipeline.features.image) is not None:
        return f'{values} instead of an image: send {{"{image.column}": {{"{BASE64}": "…"}}}}, and no pixels'
    columns = len(pipeline.columns)
    expected = f"{columns} columns in this order" if columns > 1 else "one column"
    return (
        f"{values}, and the model takes {expected}: {names_of(pipeline)}; send the values of the table, not "
        "the numbers that they are encoded as, or objects with the columns' names"
    )


def names_of(pipeline: Pipeline) -> str:
    """Return the names of the columns in their order, for messages."""
    names = [*pipeline.columns]
    return ", ".join(names[:_SHOWN_COLUMNS]) + (", …" if len(names) > _SHOWN_COLUMNS else "")


def check_keys(body: Body, request: Mapping[str, Any]) -> None:
    """Check that no object in a body has a key twice: the parser has kept the last one.

    Raises:
        BadRequest: one has.
    """
    try:
        keys = _count_keys(request)
    except RecursionError:
        raise BadRequest("the request is nested too deeply") from None
    # Texts may contain these characters too.
    if keys != sum(1 for _ in _KEY.finditer(body)):
        parse_unique(body)


def _count_keys(value: Mapping[str, Any] | list[Any]) -> int:
    if isinstance(value, list):
        return sum(_count_keys(item) for item in value if isinstance(item, dict | list))
    return len(value) + sum(_count_keys(item) for item in value.values() if isinstance(item, dict | list))


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
    if len({*lengths.values()}) > 1:
        raise BadRequest(f"columns differ in their number of rows: {lengths}")
    rows = next(iter(lengths.values()), 0)
    if rows == 0:
        raise BadRequest("inputs have no rows")
    size = pipeline.rows_of_window
    check_size(rows * size, pipeline)
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


def check_size(rows: int, pipeline: Pipeline) -> None:
    """Check that rows do not become too many numbers.

    Raises:
        BodyTooLarge: they do.
    """
    most = max(MAX_INPUT_BYTES // (4 * pipeline.features.width), 1)
    if rows > most:
        raise BodyTooLarge(f"{rows} rows are too many for one request; send at most {most}")
