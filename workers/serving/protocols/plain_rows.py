"""Reads the usual body for a table of numbers, rows as lists, without a Python object for each number."""

import numpy as np

from jobs.spec.signature import TensorSpec
from workers.features.pipeline import Pipeline
from workers.serving.protocols.json_tensors import Body
from workers.serving.protocols.plain_numbers import PlainTensor, parse_plain_numbers
from workers.serving.protocols.table_rows import check_size

_FLOAT64 = np.dtype(np.float64)


def parse_plain_rows(body: Body, pipeline: Pipeline) -> PlainTensor | None:
    """Return the model's input for a body with lists of numbers.

    Returns:
        The input with the key of its rows; None if the body is anything else, does not fit the columns, or
        they are not all numbers. The general parser reads it then.

    Raises:
        BodyTooLarge: the rows become too many numbers.
    """
    if (numeric := pipeline.numeric_rows) is None:
        return None
    columns, window = len(pipeline.columns), pipeline.features.window
    shape = (columns,) if window is None else (window.rows, columns)
    plain = parse_plain_numbers(body, TensorSpec(name="input", dtype="float64", shape=shape), _FLOAT64)
    if plain is None:
        return None
    check_size(len(plain.array) * pipeline.rows_of_window, pipeline)
    encoded = numeric.encode(plain.array.reshape(-1, columns))
    if encoded is None:
        return None
    return plain._replace(array=encoded.reshape(len(plain.array), *pipeline.features.input_shape))
