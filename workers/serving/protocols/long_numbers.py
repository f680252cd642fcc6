"""Reads requests again whose whole numbers are longer than those of 64 bits.

orjson reads them as floats, which are no longer the texts that a file has for a category of many digits.
"""

from typing import Any

from workers.features.pipeline import Pipeline
from workers.serving.protocols.json_tensors import Body, parse_unique

_LONG_NUMBER = b"0" * 20
"""A whole number of 64 bits has at most as many digits."""
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")


def with_exact_numbers(request: Any, body: Body, pipeline: Pipeline | None) -> Any:
    """Return a request with its whole numbers as they were sent, if a category may take them.

    Args:
        request: as orjson read it.
        body: the JSON.
        pipeline: the version's; None if it takes no columns of a table.

    Raises:
        BadRequest: an object has a key twice, or a number has thousands of digits.
    """
    if pipeline is None or "category" not in pipeline.columns.values():
        return request
    return parse_unique(body) if _LONG_NUMBER in body.translate(_AS_ZEROS) else request
