"""Reads the rows with which the sender of a model wants it to be tried: an NPZ file, or JSON.

JSON has the forms of a request to the prediction server: `{"instances": [row, …]}` or `{"inputs": …}`, or the
rows alone. A row is the value of the only input, or an object with a value for each input. For a model with a
pipeline it is an object with a value for each column.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobs.spec.data.features import Features
from jobs.spec.data.file_limits import DEFAULT_LIMITS
from jobs.spec.signature import Signature, TensorSpec
from workers.engine.arrays import Array
from workers.engine.data.table import read_npz
from workers.engine.errors import BadData, BadModel
from workers.engine.tasks.samples.known_rows import fits
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue

MAX_ROWS = 32
_ZIP = b"PK\x03\x04"
FORMS = 'an NPZ file with one array for each input, or JSON: {"instances": [row, …]}'


class BadSample(BadModel):
    """The rows do not fit the model's signature; the message states what came and what would do."""

    code = "bad_sample"


def read_sample(path: Path, signature: Signature, features: Features | None) -> list[Array]:
    """Return one array for each input, (rows, …), with at most `MAX_ROWS` rows.

    Args:
        path: the file.
        signature: the model's signature.
        features: the pipeline in the model's file, if there is one.

    Raises:
        BadSample: it is in another format, or its rows do not fit the signature.
    """
    with path.open("rb") as file:
        is_npz = file.read(4) == _ZIP
    try:
        values = read_npz(path, DEFAULT_LIMITS).columns if is_npz else json.loads(path.read_bytes())
    except BadData as error:
        raise BadSample(f"the sample cannot be read: {error}; expected {FORMS}") from error
    except (ValueError, RecursionError) as error:
        raise BadSample(f"the sample is not JSON: {str(error)[:200]}; expected {FORMS}") from error
    if features is not None and not is_npz:
        return [_of_columns(values, Pipeline(features))]
    return _checked(_by_input(values, signature), signature)


def _of_columns(values: Any, pipeline: Pipeline) -> Array:
    rows = values.get("instances") if isinstance(values, dict) else values
    windows = pipeline.features.window is not None
    try:
        if isinstance(values, dict) and isinstance(values.get("inputs"), dict):
            columns = values["inputs"]
            return pipeline.of_json(columns, max(map(len, columns.values()), default=0))[:MAX_ROWS]
        if not isinstance(rows, list) or not rows:
            raise BadSample(f"the sample has no rows; expected {FORMS}, with a value for each column")
        return (pipeline.of_windows if windows else pipeline.of_rows)(rows[:MAX_ROWS])
    except (BadValue, TypeError, AttributeError) as error:
        columns = ", ".join(list(pipeline.columns)[:20])
        raise BadSample(f"the sample does not fit the columns {columns}: {error}") from error


def _by_input(values: Any, signature: Signature) -> list[Any]:
    """Return the values of each input, in the order of the signature."""
    names = [spec.name for spec in signature.inputs]
    if isinstance(values, dict) and "instances" in values and "instances" not in names:
        values = values["instances"]
    elif isinstance(values, dict) and "inputs" in values and "inputs" not in names:
        values = values["inputs"]
    if isinstance(values, Mapping):
        return _of_mapping(values, names)
    if not isinstance(values, list) or not values:
        raise BadSample(f"the sample has no rows; expected {FORMS}")
    if all(isinstance(row, dict) for row in values):
        if wrong := next((row for row in values if set(row) != set(names)), None):
            raise BadSample(f"a row of the sample has {_listed(wrong)}, but the inputs are {_listed(names)}")
        return [[row[name] for row in values] for name in names]
    if len(names) == 1:
        return [values]
    raise BadSample(
        f"the model has the inputs {_listed(names)}: each row of the sample must be an object with them"
    )


def _of_mapping(values: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    if set(values) == set(names):
        return [values[name] for name in names]
    # `numpy.savez(file, a, b)` numbers the arrays, and one array may have any name.
    if len(values) == len(names) and (
        len(names) == 1 or all(f"arr_{i}" in values for i in range(len(names)))
    ):
        return list(values.values()) if len(names) == 1 else [values[f"arr_{i}"] for i in range(len(names))]
    raise BadSample(f"the sample has {_listed(values)}, but the inputs are {_listed(names)}")


def _checked(parts: Sequence[Any], signature: Signature) -> list[Array]:
    arrays = [_array_of(part, spec) for part, spec in zip(parts, signature.inputs, strict=True)]
    counts = {spec.name: len(array) for array, spec in zip(arrays, signature.inputs, strict=True)}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{count} for {name!r}" for name, count in counts.items())
        raise BadSample(f"the inputs of the sample have different numbers of rows: {listed}")
    return [array[:MAX_ROWS] for array in arrays]


def _array_of(values: Any, spec: TensorSpec) -> Array:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise BadSample(f"the rows of {spec.name!r} in the sample have different shapes") from error
    if array.dtype.kind not in "buif":
        raise BadSample(f"{spec.name!r} of the sample has {array.dtype} values; it takes {spec.dtype}")
    # One row without the axis of rows.
    if not _takes(spec, array) and _takes(spec, array[None]):
        array = array[None]
    if not _takes(spec, array) or not len(array):
        wanted = ", ".join(["rows", *("any" if size is None else str(size) for size in spec.shape)])
        raise BadSample(f"{spec.name!r} of the sample has the shape {list(array.shape)}; it takes [{wanted}]")
    typed = array.astype(spec.dtype)
    if "float" not in spec.dtype and not np.array_equal(typed, array):
        raise BadSample(f"{spec.name!r} of the sample has numbers that are no {spec.dtype}")
    return typed


def _takes(spec: TensorSpec, array: Array) -> bool:
    return array.ndim > 0 and fits(array.shape[1:], spec.shape)


def _listed(names: Any) -> str:
    return ", ".join(map(repr, list(names)[:20])) or "nothing"
