"""How events and points are packed into rows: compressed JSON, float64 columns.

Every point goes through here, so packing is fast: the lowest level of compression, and of columns first the
bytes of the same weight (a third smaller, and faster).
"""

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from jobs.contracts.events import Points

Event = dict[str, Any]
Columns = NDArray[np.float64]
"""A (3, n) array of x, value, time; a value that was not finite is NaN."""

_FAST = 1
_SHUFFLED = b"\x01"
"""What a chunk of points begins with. One that begins otherwise is of an older release: not shuffled."""


def pack_events(events: Sequence[Event]) -> bytes:
    """Return a chunk of events."""
    return zlib.compress(orjson.dumps(list(events), option=orjson.OPT_NON_STR_KEYS), _FAST)


def unpack_events(data: bytes | memoryview) -> list[Event]:
    """Return the events of a chunk, as readers see them."""
    events: list[Event] = json.loads(zlib.decompress(bytes(data)))
    for event in events:
        if "table" in event:
            event["points"] = _points(*event.pop("table"))
    return events


def as_metric(said: Points) -> Event:
    """Return a table of points as the `metric` event that it is stored as; readers see its `points`."""
    body: Event = {"type": "metric", "time": said.time, "x": said.x}
    whose = {"trial": said.trial, "execution": said.execution}
    body |= {name: number for name, number in whose.items() if number is not None}
    return body | {"table": (said.names, said.at, said.times, said.values)}


def _points(
    names: list[str], at: list[float], times: list[float], columns: list[list[float | None]]
) -> list[list[str | float | None]]:
    rows = zip(at, times, zip(*columns, strict=True), strict=True)
    return [[name, x, value, time] for x, time, row in rows for name, value in zip(names, row, strict=True)]


def weight(event: Event) -> int:
    """Return how much there is to read in an event: its points, at least one."""
    return len(event["points"]) or 1 if event["type"] == "metric" else 1


def pack_columns(columns: Columns) -> bytes:
    """Return a chunk of points."""
    data = np.ascontiguousarray(columns, dtype="<f8")
    shuffled = data.view(np.uint8).reshape(3, -1, 8).transpose(0, 2, 1)
    return _SHUFFLED + zlib.compress(shuffled.tobytes(), _FAST)


def unpack_columns(data: bytes | memoryview) -> Columns:
    """Return the points of a chunk."""
    packed = bytes(data)
    if not packed.startswith(_SHUFFLED):
        return np.frombuffer(zlib.decompress(packed), dtype="<f8").reshape(3, -1)
    shuffled = np.frombuffer(zlib.decompress(packed[1:]), dtype=np.uint8).reshape(3, 8, -1)
    return np.ascontiguousarray(shuffled.transpose(0, 2, 1)).view("<f8").reshape(3, -1)
