"""Decides whether a GPU has enough free memory for a job, and describes who holds the rest.

Scheduler and worker use the same rule on the same figures: those that the worker reports of each device.
"""

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from jobs.spec.sections.gpu import GB
from jobs.spec.sections.mesh import MeshSpec

type DeviceState = Mapping[str, Any]
"""A device as a worker reports it, see `jobs.answers.runs.workers.DeviceOut`."""

PREALLOCATED = 0.75
"""The share of a GPU that JAX allocates at its start if no share is given."""
UNKNOWN = 0.5
"""The share that must be free for a job with an unknown need, such as one with own code."""
TEMPORARIES = 1.5
"""A plan estimates weights, gradients, slots and activations. Temporaries of compiled programs are added."""
CONTEXT_BYTES = 2**30
"""The memory of CUDA and its libraries in every process, before the first array."""
MOST = 0.9
"""No job needs more, so that a desktop or a monitor with a few hundred MB keeps no job away."""
KEEPS_RESERVED_GPUS = "keeps_reserved_gpus"
"""The entry of a worker's facts with which it reports that it looks at reservations when it takes a GPU."""
LONGEST_NAME = 40
"""In characters: others choose the names of their programs."""


class MemoryNeed(NamedTuple):
    """The known facts about the memory that a job takes on each of its GPUs.

    Attributes:
        estimate: bytes by the plan, without temporaries; None if the model is unknown before it is built.
        fraction: the largest share of a GPU, as its spec sets it.
        preallocates: whether it takes its share when it starts.
    """

    estimate: int | None = None
    fraction: float | None = None
    preallocates: bool = False

    @classmethod
    def of(cls, mesh: MeshSpec | None, estimate: int | None) -> "MemoryNeed":
        """Return the need of a job with this mesh."""
        if mesh is None:
            return cls(estimate)
        return cls(estimate, mesh.memory_fraction, mesh.preallocate)

    def bytes_of(self, total: int, preallocated: float | None = None) -> int:
        """Return how many bytes must be free on a GPU.

        Args:
            total: the GPU's memory, in bytes.
            preallocated: the share that every run on this worker allocates at its start, as its operator
                chose; None if runs allocate as they need it.
        """
        if self.preallocates or preallocated is not None:
            share = self.fraction or preallocated or PREALLOCATED
            return int(min(share, MOST) * total)
        known = []
        if self.estimate is not None:
            known.append(self.estimate * TEMPORARIES + CONTEXT_BYTES)
        if self.fraction is not None:
            known.append(self.fraction * total)
        return int(min(*known, MOST * total) if known else UNKNOWN * total)


UNKNOWN_NEED = MemoryNeed()


def lacks_memory(
    device: DeviceState, need: MemoryNeed, preallocated: float | None = None, *, runs: bool = True
) -> bool:
    """Return whether too little of a device's memory is free for a job.

    A device on which nothing is held is always given: a model that is too large for it fails with
    `out_of_memory`, but does not wait for ever.

    Args:
        device: as its worker reports it.
        need: the job's.
        preallocated: see `MemoryNeed.bytes_of`.
        runs: whether the memory of this worker's own runs counts too, beside that of others.
    """
    total = device.get("memory_bytes")
    held = held_bytes(device) + (int(device.get("runs_bytes") or 0) if runs else 0)
    if not total or held <= 0:
        return False
    return bool(total - held < need.bytes_of(total, preallocated))


def held_bytes(device: DeviceState) -> int:
    """Return how much of a device's memory processes hold that this worker did not start."""
    return int(device.get("others_bytes") or 0)


def is_gpu(device: DeviceState) -> bool:
    """Return whether a device is a GPU of NVIDIA or a part of one."""
    return str(device.get("name", "")).startswith("gpu:")


def describe_held(devices: Iterable[DeviceState], now: dt.datetime) -> str:
    """Return a clause for each device that others or this worker's runs hold, the fullest first.

    Example:
        `GPU 1: 21 of 24 GB held by another user's python since 14:02 UTC (user eve, process 4711)`
    """
    held = [device for device in devices if held_bytes(device) or device.get("runs_bytes")]
    held.sort(key=lambda device: -held_bytes(device))
    return "; ".join(_describe(device, now) for device in held)


def _describe(device: DeviceState, now: dt.datetime) -> str:
    number = str(device["name"]).partition(":")[2]
    parts = []
    if held := held_bytes(device):
        total = device.get("memory_bytes") or 0
        parts.append(f"{_gigabytes(held)} of {_gigabytes(total)} GB held by {_holders(device, now)}")
    if runs := int(device.get("runs_bytes") or 0):
        parts.append(f"{_gigabytes(runs)} GB held by runs of this worker")
    return f"GPU {number}: {' and '.join(parts)}"


def _holders(device: DeviceState, now: dt.datetime) -> str:
    others = sorted(device.get("others") or (), key=lambda other: -(other.get("memory_bytes") or 0))
    if not others:
        return "processes that this worker cannot see"
    first, more = others[0], len(others) - 1
    text = f"{describe_process(first)} since {_moment(first['since'], now)}"
    details = [f"user {first['user']}"] if first.get("user") else []
    details += [f"process {first['pid']}"] if first.get("pid") else []
    text += f" ({', '.join(details)})" if details else ""
    return text + (f" and {more} more process{'es' if more > 1 else ''}" if more else "")


def describe_process(process: Mapping[str, Any]) -> str:
    """Return whose process it is and its program, such as `another user's python`."""
    program = str(process.get("program") or "")[:LONGEST_NAME]
    if not process.get("pid"):
        return "processes that this worker cannot see"
    if not program:
        return "a process that this worker cannot see"
    if process.get("same_user"):
        return f"another {program} of this worker's user"
    return f"another user's {program}"


def _gigabytes(count: float) -> str:
    amount = count / GB
    return f"{amount:.0f}" if amount >= 10 else f"{amount:.1f}".removesuffix(".0")


def _moment(seconds: float, now: dt.datetime) -> str:
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    same_day = moment.date() == now.astimezone(dt.UTC).date()
    return f"{moment:%H:%M} UTC" if same_day else f"{moment:%Y-%m-%d %H:%M} UTC"


def places_of_gpu(slots: int, gpus: int) -> int:
    """Return how many attempts may use one GPU of a worker: more than one only with more slots than GPUs."""
    return max(math.ceil(slots / gpus), 1) if gpus else 0
