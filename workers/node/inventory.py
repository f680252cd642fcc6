"""Reads the machine's devices, memory, load and package versions."""

import functools
import importlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("trainyard", "keras", "jax", "jaxlib", "numpy")
# Importing JAX alone would exceed a smaller default.
MIN_MEMORY_CAP = 2 * 2**30
# The rest is left to the node itself and the operating system.
USABLE_SHARE = 0.9


class Inventory:
    """Reads the machine without importing JAX, which would allocate the devices."""

    def __init__(self) -> None:
        self._nvml = _nvml()
        # The first call returns zeros: it only sets the start of the interval that the next one measures.
        psutil.cpu_percent(percpu=True)

    @property
    def accelerators(self) -> list[str]:
        """The device names that CUDA_VISIBLE_DEVICES accepts."""
        return [str(index) for index in range(self._nvml.nvmlDeviceGetCount())] if self._nvml else []

    def devices(self) -> list[dict[str, Any]]:
        """Return the GPUs, or the CPU cores of a machine without GPUs; memory in bytes, load from 0 to 1."""
        return self._gpu_devices() if self._nvml else _cpu_devices()

    def info(self) -> dict[str, Any]:
        """Return the machine's memory in bytes, its load, and package versions."""
        memory = psutil.virtual_memory()
        return {
            "python": platform.python_version(),
            "packages": _versions(),
            "cores": cores(),
            "load": os.getloadavg()[0],
            "memory_bytes": memory.total,
            "memory_used": memory.total - memory.available,
        }

    def _gpu_devices(self) -> list[dict[str, Any]]:
        found = []
        for index in range(self._nvml.nvmlDeviceGetCount()):
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
            load = self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
            name = self._nvml.nvmlDeviceGetName(handle)
            found.append(
                {
                    "name": f"gpu:{index}",
                    # Older versions of pynvml return bytes.
                    "kind": name.decode() if isinstance(name, bytes) else name,
                    "memory_bytes": memory.total,
                    "memory_used": memory.used,
                    "load": load,
                }
            )
        return found


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_per_slot(slots: int) -> int:
    """Return the default memory cap of a run, in bytes."""
    total = int(total_memory() * USABLE_SHARE)
    # Many slots on a small machine: the caps together exceed its memory, but each run can at least start.
    return max(total // slots, min(MIN_MEMORY_CAP, total))


def total_memory() -> int:
    """Return the machine's memory, or its container's limit, in bytes."""
    total = int(psutil.virtual_memory().total)
    try:
        allowed = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total  # no cgroup v2
    return min(total, int(allowed)) if allowed.isdigit() else total


def available_memory() -> int:
    """Return the memory that is still available on this machine or in its container, in bytes."""
    left = int(psutil.virtual_memory().available)
    try:
        folder = Path("/sys/fs/cgroup")
        allowed = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return left  # no cgroup v2, or the root cgroup, which has no limit
    if not allowed.isdigit():
        return left
    # `memory.current` includes the page cache. The kernel frees its inactive part when memory is needed.
    return min(left, int(allowed) - used + int(statistics.get("inactive_file", 0)))


def _cpu_devices() -> list[dict[str, Any]]:
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


# Cached for every heartbeat: the lookup reads each folder of sys.path.
@functools.cache
def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # running from a checkout
            continue
    return found


def _nvml() -> Any:
    """Return NVIDIA's management library, or None on a machine without an NVIDIA device."""
    try:
        pynvml = importlib.import_module("pynvml")  # installed by the gpu extra
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return pynvml if pynvml.nvmlDeviceGetCount() else None
    except pynvml.NVMLError:
        return None
