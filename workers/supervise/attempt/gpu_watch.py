"""Watches the GPUs of one run: points for its charts, and processes of others that arrive on them."""

import time
from collections.abc import Sequence
from typing import Any, Protocol

from jobs.messages.events import Warned
from jobs.spec.checks.gpu_memory import DeviceState, describe_process
from jobs.spec.data.file_limits import GIB
from jobs.spec.sections.gpu import GB

FOREIGN = "gpu_shared"
"""The code of the warning about a process of others."""
FIGURES = (
    ("memory_gib", "memory_used", 1 / GIB, 3),
    ("load_percent", "load", 100.0, 1),
    ("temperature_celsius", "temperature", 1.0, 0),
)
"""The end of a metric's name, the figure of the device, its factor and how many decimals it has."""

FRESH_SECONDS = 1.0
"""Runs that look at their GPUs within this time share one reading."""

type Point = tuple[str, float, float, float]


class DeviceReader(Protocol):
    """The worker's view of its GPUs."""

    @property
    def preallocated(self) -> float | None:
        """The share of a GPU that each run takes at its start, as the operator chose."""

    async def read(self, max_age: float = FRESH_SECONDS) -> Sequence[DeviceState]:
        """Return the GPUs as they were at most `max_age` seconds ago."""

    async def publish(self) -> None:
        """Write the GPUs' present state to the database, for the scheduler."""


class GpuWatch:
    """The GPUs that one run uses.

    Args:
        reader: reads them; None without GPUs.
        names: the run's GPUs.
        present: the devices as they were when the run got them: a process that was there has no warning.
    """

    def __init__(
        self,
        reader: DeviceReader | None = None,
        names: Sequence[str] = (),
        present: Sequence[DeviceState] = (),
    ) -> None:
        self._reader = reader
        self._names = tuple(names)
        self._known = {key for device in self._own(present) for key in _keys(device)}

    async def look(self, second: float) -> tuple[list[Point], list[Warned]]:
        """Return points for the charts, and warnings about processes of others that are new.

        Args:
            second: of the attempt.
        """
        if self._reader is None or not self._names:
            return [], []
        devices = self._own(await self._reader.read())
        points = [point for device in devices for point in _points(device, second)]
        return points, [warning for device in devices for warning in self._newcomers(device)]

    def _own(self, devices: Sequence[DeviceState]) -> list[DeviceState]:
        return [device for device in devices if device["name"] in self._names]

    def _newcomers(self, device: DeviceState) -> list[Warned]:
        found = []
        for other in device.get("others", ()):
            # Memory without a process has no identity: it may be that of the same processes as before.
            if other.get("pid") and (key := _key(device, other)) not in self._known:
                self._known.add(key)
                found.append(_warning(device, other))
        return found


def _keys(device: DeviceState) -> set[tuple[str, int, float]]:
    return {_key(device, other) for other in device.get("others", ())}


def _key(device: DeviceState, other: dict[str, Any]) -> tuple[str, int, float]:
    return device["name"], other.get("pid") or 0, other["since"]


def _points(device: DeviceState, second: float) -> list[Point]:
    prefix, now = f"system/{device['name'].replace(':', '')}_", time.time()
    return [
        (f"{prefix}{name}", second, round(device[figure] * factor, digits), now)
        for name, figure, factor, digits in FIGURES
        if device.get(figure) is not None
    ]


def _warning(device: DeviceState, other: dict[str, Any]) -> Warned:
    who = describe_process(other)
    user = f"user {other['user']}, " if other.get("user") else ""
    size, total = other.get("memory_bytes"), device.get("memory_bytes")
    amount = "memory" if size is None else f"{size / GB:.1f} GB"
    of_total = f" of {total / GB:.1f} GB" if size is not None and total else ""
    message = (
        f"{who[:1].upper()}{who[1:]} ({user}process {other['pid']}) has begun to use {device['name']}, which "
        f"this run holds: {amount}{of_total} so far. The run continues; it may become slower, and it fails "
        "if too little memory is left."
    )
    return Warned(time=time.time(), code=FOREIGN, message=message)
