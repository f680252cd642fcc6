"""Encodes events as compressed JSON, and metric points as compressed float64 columns.

Every point is encoded, so this must be fast: it uses the lowest compression level. A column's bytes are
shuffled first, so that equally significant bytes are adjacent; the result is a third smaller, and faster.
"""

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from jobs.messages.events import Points

Event = dict[str, Any]
Columns = NDArray[np.float64]
"""A (3, n) array of x, value, time; a value that is not finite is NaN."""

_FAST = 1  # zlib's lowest level that compresses
_SHUFFLED = b"\x01"
"""The first byte in a chunk of points. Chunks from older releases lack it; they are not shuffled."""


def pack_events(events: Sequence[Event]) -> bytes:
    """Encode events as a chunk."""
    return zlib.compress(orjson.dumps(list(events), option=orjson.OPT_NON_STR_KEYS), _FAST)


def unpack_events(data: bytes | memoryview) -> list[Event]:
    """Return a chunk's events. Metric tables are expanded to `points`.

    A metric event has `nonfinite` if a value was not finite, which is stored as null.
    """
    events: list[Event] = json.loads(zlib.decompress(bytes(data)))
    for event in events:
        if "table" in event:
            names, at, times, columns = event.pop("table")
            if any(None in column for column in columns):
                event["nonfinite"] = True
            rows = zip(at, times, zip(*columns, strict=True), strict=True)
            event["points"] = [
                [name, x, value, time]
                for x, time, row in rows
                for name, value in zip(names, row, strict=True)
            ]
        elif event["type"] == "metric" and any(point[2] is None for point in event["points"]):
            event["nonfinite"] = True
    return events


def metric_event(points: Points) -> Event:
    """Return the `metric` event that stores a table of points."""
    body: Event = {"type": "metric", "time": points.time, "x": points.x}
    owner = {"trial": points.trial, "execution": points.execution}
    body |= {name: number for name, number in owner.items() if number is not None}
    # A table has each name and each x once; as points, both would be repeated for every value.
    return body | {"table": (points.names, points.at, points.times, points.values)}


def event_weight(event: Event) -> int:
    """Return an event's size: its point count, at least 1."""
    return len(event["points"]) or 1 if event["type"] == "metric" else 1


def pack_columns(columns: Columns) -> bytes:
    """Encode points as a chunk."""
    data = np.ascontiguousarray(columns, dtype="<f8")
    shuffled = data.view(np.uint8).reshape(3, -1, 8).transpose(0, 2, 1)
    return _SHUFFLED + zlib.compress(shuffled.tobytes(), _FAST)


def unpack_columns(data: bytes | memoryview) -> Columns:
    """Return a chunk's points."""
    packed = bytes(data)
    if not packed.startswith(_SHUFFLED):
        return np.frombuffer(zlib.decompress(packed), dtype="<f8").reshape(3, -1)
    shuffled = np.frombuffer(zlib.decompress(packed[1:]), dtype=np.uint8).reshape(3, 8, -1)
    return np.ascontiguousarray(shuffled.transpose(0, 2, 1)).view("<f8").reshape(3, -1)
