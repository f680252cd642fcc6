"""Describes a worker's devices for pages: who holds each, and which processes the worker did not start."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs.models import Job, Worker
from jobs.spec.checks.gpu_memory import DeviceState, describe_process, is_gpu

MOST_CORES, MOST_GPUS = 4, 16
"""How many devices a worker's card shows."""


@dataclass(frozen=True)
class Slot:
    """One slot, and the job that holds it; None if the slot is free or the reader may not see the job.

    Attributes:
        attempt: the attempt that holds it; None if it is free.
    """

    state: str
    job: Job | None = None
    trial: int | None = None
    attempt: int | None = None


@dataclass(frozen=True)
class OtherProcess:
    """A process on a GPU that the worker did not start.

    Attributes:
        text: whose it is, such as `another user's python`.
        about: its user and its number, as far as they are known.
        memory_bytes: None if the driver does not report it.
        since: since when the worker has seen it.
    """

    text: str
    about: str
    memory_bytes: int | None
    since: dt.datetime

    @classmethod
    def of(cls, process: dict[str, Any]) -> "OtherProcess":
        """Return the process that a worker has reported."""
        about = [f"user {process['user']}"] if process.get("user") else []
        about += [f"process {process['pid']}"] if process.get("pid") else []
        since = dt.datetime.fromtimestamp(process["since"], dt.UTC)
        return cls(describe_process(process), ", ".join(about), process.get("memory_bytes"), since)


@dataclass(frozen=True)
class DeviceView:
    """A device with those who use it.

    Attributes:
        device: as its worker reports it.
        runs: the slots of the attempts that hold it, one of each.
        others: the processes on it that the worker did not start.
    """

    device: DeviceState
    runs: list[Slot]
    others: list[OtherProcess]


def devices_of(worker: Worker, slots: Sequence[Slot]) -> list[DeviceView]:
    """Return a worker's devices; `slots` are those that its open attempts hold."""
    by_attempt = {slot.attempt: slot for slot in slots if slot.attempt is not None}
    return [
        DeviceView(
            device,
            [by_attempt[attempt] for attempt in device.get("attempts", ()) if attempt in by_attempt],
            [OtherProcess.of(process) for process in device.get("others", ())],
        )
        for device in worker.devices
    ]


def shown_devices(devices: Sequence[DeviceView]) -> Sequence[DeviceView]:
    """Return the devices that a worker's card shows: many cores look alike, but each GPU counts."""
    most = MOST_GPUS if any(is_gpu(view.device) for view in devices) else MOST_CORES
    return devices[:most]
