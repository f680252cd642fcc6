"""Reads the machine's devices, memory, load and package versions."""

import functools
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psutil

from workers.node.accelerators import PLUGINS, Accelerators
from workers.system import usable_memory
from workers.system.usable_memory import total_memory

PACKAGES = ("trainyard", "keras", "jax", "jaxlib", *PLUGINS, "numpy")
# Importing JAX alone would exceed a smaller default.
MIN_MEMORY_CAP = 2 * 2**30
# The rest is left to the node itself and the operating system.
USABLE_SHARE = 0.9


class Inventory:
    """Reads the machine without importing JAX, which would allocate the devices."""

    def __init__(self, accelerators: Accelerators) -> None:
        self.accelerators = accelerators
        # The first call returns zeros: it only sets the start of the interval that the next one measures.
        psutil.cpu_percent(percpu=True)

    def devices(self) -> list[dict[str, Any]]:
        """Return the worker's GPUs, or else the CPU cores; memory in bytes, load from 0 to 1."""
        return self.accelerators.devices() or _cpu_devices()

    def info(self) -> dict[str, Any]:
        """Return the memory in bytes, the load, package versions, and why GPUs are not used."""
        total, problem = total_memory(), self.accelerators.problem
        return {
            **({} if problem is None else {"no_gpu": problem}),
            "python": platform.python_version(),
            "packages": _versions(),
            "cores": cores(),
            "load": os.getloadavg()[0],
            "memory_bytes": total,
            "memory_used": max(0, total - available_memory()),
        }


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_per_slot(slots: int) -> int:
    """Return a run's default memory cap, in bytes."""
    total = int(total_memory() * USABLE_SHARE)
    # Many slots on a small machine: the caps together exceed its memory, but each run can at least start.
    return max(total // slots, min(MIN_MEMORY_CAP, total))


def available_memory() -> int:
    """Return the bytes that are still available on this machine or below the limit of its control group."""
    left = usable_memory.available_memory()
    return int(psutil.virtual_memory().available) if left is None else left


def _cpu_devices() -> list[dict[str, Any]]:
    total = total_memory()
    loads = psutil.cpu_percent(percpu=True)[: cores()]
    used = max(0, total - available_memory())
    return [
        {
            "name": f"cpu:{index}",
            "kind": "cpu",
            "memory_bytes": total,
            "memory_used": used,
            "load": load / 100,
        }
        for index, load in enumerate(loads)
    ]


# Cached for every heartbeat: the lookup reads each folder of sys.path.
@functools.cache
def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # running from a checkout
            continue
    return versions
