"""Decides which bodies with table rows are read at once, and which by another process."""

from workers.features.pipeline import Pipeline
from workers.serving.protocols.json_tensors import Body

MAX_QUICK_BYTES = 2 * 2**10
MAX_QUICK_VALUES = 6_000
"""Rows in a longer body, or with more values, are read by another process: a value takes about 0.2 µs."""
VALUES_PER_COLUMN = 25
"""A column takes as long as this many values, however few rows there are."""
POSITIONS_PER_COLUMN = 1_000
"""Positions of the input that take as long as a column."""
_OF_NUMBERS = b"0123456789+-.eE,[] \t\r\n"
_PLAIN = (b'{"instancs":}', b'{"inputs":}')
"""Bodies without the characters of numbers and lists: an "e" may belong to a number."""


def size_of(pipeline: Pipeline) -> int:
    """Return how many columns there are, with wide ones counted several times.

    An image counts as so many that another process reads every request: a body of 2 KiB may be an image of
    millions of pixels. So do wide rows in windows, because the rows of a window may be single values.
    """
    features = pipeline.features
    if features.image is not None or (features.window is not None and features.width >= POSITIONS_PER_COLUMN):
        return MAX_QUICK_VALUES
    return len(pipeline.columns) + features.width // POSITIONS_PER_COLUMN


def is_quick(body: Body, size: int, *, raw: int = 0) -> bool:
    """Return whether a body's rows are so few that they are read at once.

    Args:
        body: as it was received.
        size: see `size_of`; 0 without a pipeline.
        raw: how many of its bytes are binary tensors, of which each may be a row.
    """
    if size == 0:
        return True
    values = body.count(b",") + 1
    # Lists of numbers alone have as many values as commas, and no text, whose words take longer.
    if raw == 0 and body.translate(None, _OF_NUMBERS) in _PLAIN:
        return values + size * VALUES_PER_COLUMN <= MAX_QUICK_VALUES
    if len(body) > MAX_QUICK_BYTES:
        return False
    # An escape may hide a key.
    are_by_row = not any(mark in body for mark in (b'"inputs"', b'"examples"', b"\\"))
    objects, lists = body.count(b"{"), body.count(b"[")
    # The rows are objects, or lists in windows that are objects. Others have at most one row for each value.
    rows = max(objects, lists) if are_by_row and objects > 1 else values
    return size * (raw + rows + VALUES_PER_COLUMN) <= MAX_QUICK_VALUES
