"""How events and points are packed into rows: compressed JSON, compressed float64 columns."""

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Event = dict[str, Any]
Columns = NDArray[np.float64]
"""A (3, n) array of x, value, time; a value that was not finite is NaN."""


def pack_events(events: Sequence[Event]) -> bytes:
    """Return a chunk of events."""
    return zlib.compress(json.dumps(events, separators=(",", ":")).encode())


def unpack_events(data: bytes | memoryview) -> list[Event]:
    """Return the events of a chunk."""
    events: list[Event] = json.loads(zlib.decompress(bytes(data)))
    return events


def pack_columns(columns: Columns) -> bytes:
    """Return a chunk of points."""
    return zlib.compress(np.ascontiguousarray(columns, dtype="<f8").tobytes(), level=1)


def unpack_columns(data: bytes | memoryview) -> Columns:
    """Return the points of a chunk."""
    return np.frombuffer(zlib.decompress(bytes(data)), dtype="<f8").reshape(3, -1)
