"""Prometheus' metrics of a worker's GPUs."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import Metric

from jobs.monitoring.families import gauges
from jobs.spec.checks.gpu_memory import DeviceState, is_gpu

FIGURES = (
    ("memory_bytes", "Memory of each GPU.", "memory_bytes"),
    ("memory_used_bytes", "Memory in use, by anyone.", "memory_used"),
    ("memory_others_bytes", "Memory that processes hold which this worker did not start.", "others_bytes"),
    ("load", "Load, from 0 to 1.", "load"),
    ("temperature_celsius", "Temperature.", "temperature"),
    ("power_watts", "Power.", "power_watts"),
)
"""The end of a metric's name, its help, and the figure of the device."""


def gpu_families(devices: Sequence[DeviceState]) -> Iterator[Metric]:
    """Yield the figures of the GPUs, as far as they report them, without names of users and programs."""
    gpus = [device for device in devices if is_gpu(device)]
    for name, text, figure in FIGURES:
        # A GPU without others has a zero, so that an alert can distinguish it from one that is not read.
        missing = 0 if figure == "others_bytes" else None
        values = {
            device["name"]: float(value)
            for device in gpus
            if (value := device.get(figure, missing)) is not None
        }
        if values:
            yield gauges(f"trainyard_worker_gpu_{name}", text, "gpu", values)
