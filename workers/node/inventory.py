"""What this machine has: devices, memory, load, versions."""

import functools
import importlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("trainyard", "keras", "jax", "jaxlib", "numpy")
LEAST_CAP = 2 * 2**30
"""A default memory cap below this would end runs for importing JAX."""
SHARE = 0.9


class Inventory:
    """Reads the machine without importing JAX, which would take the devices."""

    def __init__(self) -> None:
        self._nvml = _nvml()
        psutil.cpu_percent(percpu=True)  # the first reading only sets the mark

    @property
    def accelerators(self) -> list[str]:
        """The names that CUDA_VISIBLE_DEVICES knows."""
        return [str(index) for index in range(self._nvml.nvmlDeviceGetCount())] if self._nvml else []

    def devices(self) -> list[dict[str, Any]]:
        """Return the GPUs, or the cores of a machine without; memory in bytes, load from 0 to 1."""
        return self._gpus() if self._nvml else _cores()

    def info(self) -> dict[str, Any]:
        """Return the machine's memory (bytes) and load, and the versions that matter."""
        memory = psutil.virtual_memory()
        return {
            "python": platform.python_version(),
            "packages": _versions(),
            "cores": cores(),
            "load": os.getloadavg()[0],
            "memory_bytes": memory.total,
            "memory_used": memory.total - memory.available,
        }

    def _gpus(self) -> list[dict[str, Any]]:
        found = []
        for index in range(self._nvml.nvmlDeviceGetCount()):
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
            load = self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
            name = self._nvml.nvmlDeviceGetName(handle)
            found.append(
                {
                    "name": f"gpu:{index}",
                    "kind": name.decode() if isinstance(name, bytes) else name,
                    "memory_bytes": memory.total,
                    "memory_used": memory.used,
                    "load": load,
                }
            )
        return found


def cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_per_slot(slots: int) -> int:
    """Return the memory cap of a run that names none, in bytes."""
    total = int(memory_total() * SHARE)
    return max(total // slots, min(LEAST_CAP, total))


def memory_total() -> int:
    """Return the memory this process may use in bytes: the machine's, or what its container allows."""
    total = int(psutil.virtual_memory().total)
    try:
        allowed = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total  # no cgroup v2 here
    return min(total, int(allowed)) if allowed.isdigit() else total


def memory_left() -> int:
    """Return the bytes that may still be used before this machine, or its container, runs short."""
    left = int(psutil.virtual_memory().available)
    try:
        folder = Path("/sys/fs/cgroup")
        allowed = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return left  # no cgroup v2 here, or the root of all
    if not allowed.isdigit():
        return left
    return min(left, int(allowed) - used + int(statistics.get("inactive_file", 0)))


def _cores() -> list[dict[str, Any]]:
    memory = psutil.virtual_memory()
    loads = psutil.cpu_percent(percpu=True)[: cores()]
    used = memory.total - memory.available
    return [
        {
            "name": f"cpu:{index}",
            "kind": "cpu",
            "memory_bytes": memory.total,
            "memory_used": used,
            "load": load / 100,
        }
        for index, load in enumerate(loads)
    ]


@functools.cache  # it looks through every folder of sys.path
def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # we run from a checkout
            continue
    return found


def _nvml() -> Any:
    """Return NVIDIA's management library, or None on a machine without such a device."""
    try:
        pynvml = importlib.import_module("pynvml")  # of the gpu extra
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return pynvml if pynvml.nvmlDeviceGetCount() else None
    except pynvml.NVMLError:
        return None
