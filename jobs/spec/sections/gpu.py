"""Declares the spec section `resources.gpu`: which GPUs a run gets."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import Field

from jobs.spec.base import Frozen

GB = 1e9


class GpuWish(Frozen):
    """The GPUs of each run, by model or name, memory and number. An empty one asks for any GPU."""

    name: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        pattern=r"[A-Za-z0-9]",
        description="words of the model's name, such as H200 or RTX 4090; or one device, such as gpu:1",
    )
    memory_gb: float | None = Field(
        default=None, gt=0, le=1e6, description="the least memory of each GPU, in 10^9 bytes"
    )
    count: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="how many, each with a slot; as many as the mesh has if absent, and one without a mesh",
    )


class GpuDevice(NamedTuple):
    """A GPU of a worker.

    Attributes:
        name: such as `gpu:0`.
        model: such as `NVIDIA H200`.
        memory_bytes: None if the GPU does not report it.
    """

    name: str
    model: str = ""
    memory_bytes: int | None = None

    @property
    def label(self) -> str:
        """Return its model and memory, such as `NVIDIA H200 (151 GB)`."""
        memory = f" ({self.memory_bytes / GB:.0f} GB)" if self.memory_bytes else ""
        return f"{self.model or 'unknown'}{memory}"


def gpu_devices(devices: Iterable[Mapping[str, Any]]) -> tuple[GpuDevice, ...]:
    """Return the GPUs among the devices that a worker reports."""
    return tuple(
        GpuDevice(str(device["name"]), str(device.get("kind", "")), device.get("memory_bytes") or None)
        for device in devices
        if str(device["name"]).startswith("gpu:")
    )
