"""Reads the machine's devices, memory, load and package versions."""

import functools
import logging
import os
import platform
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psutil

from jobs.spec.checks.gpu_memory import KEEPS_RESERVED_GPUS, PREALLOCATED
from workers.node.accelerators import PLUGINS, Accelerators
from workers.node.gpu_inventory.monitor import GpuMonitor
from workers.runner.environment import MEMORY_FRACTION, OLD_MEMORY_FRACTION, Environment
from workers.system import usable_memory
from workers.system.usable_memory import total_memory

log = logging.getLogger(__name__)

PACKAGES = ("trainyard", "keras", "jax", "jaxlib", *PLUGINS, "numpy")
# Importing JAX alone would exceed a smaller default.
MIN_MEMORY_CAP = 2 * 2**30
# The rest is left to the node itself and the operating system.
USABLE_SHARE = 0.9
LOST = "It takes no work until they answer again."
FAILURE_SECONDS = 60.0
"""How long a worker takes no work after JAX could not use a GPU."""


class Inventory:
    """Reads the machine without importing JAX, which would allocate the devices."""

    def __init__(self, accelerators: Accelerators) -> None:
        self.accelerators = accelerators
        self.gpus: GpuMonitor | None = None
        """Reads the GPUs; None without any."""
        if accelerators.nvml is not None:
            self.gpus = GpuMonitor(
                accelerators.nvml, accelerators.gpus, preallocated=preallocated(os.environ)
            )
        self._lost: str | None = None
        self._failure, self._failed_until = "", 0.0
        # The first call returns zeros: it only sets the start of the interval that the next one measures.
        psutil.cpu_percent(percpu=True)

    def devices(self) -> list[dict[str, Any]]:
        """Return the worker's GPUs, or else the CPU cores; memory in bytes, load from 0 to 1."""
        if self.gpus is not None:
            return self.gpus.states()
        return self.accelerators.devices() or _cpu_devices()

    @property
    def refusal(self) -> str | None:
        """Return why this worker takes no work, as known at the last call of `info`; None if it does."""
        if self.accelerators.refuses:
            return self.accelerators.problem
        return self._lost or (self._failure if time.monotonic() < self._failed_until else None)

    def gpu_failed(self, reason: str) -> None:
        """Take no work for a while: JAX could not use a GPU in a run. It may have been full for a moment."""
        self._failure = f"A run could not use its GPU, so this worker takes no work for a minute: {reason}"
        self._failed_until = time.monotonic() + FAILURE_SECONDS
        log.error("%s", self._failure)

    def _notice_lost_gpus(self) -> None:
        before, self._lost = self._lost, self._describe_lost_gpus()
        if self._lost is not None and before is None:
            log.error("%s", self._lost)
        elif self._lost is None and before is not None:
            log.warning("all GPUs of this worker answer again")

    def _gpu_facts(self) -> dict[str, Any]:
        """Return facts for the scheduler about how runs take GPUs; empty without any.

        That is the share of a GPU that they take at their start, if the operator had them take some.
        """
        if self.gpus is None:
            return {}
        share = self.gpus.preallocated
        return {KEEPS_RESERVED_GPUS: True} | ({} if share is None else {"gpu_share": share})

    def _describe_lost_gpus(self) -> str | None:
        """Return a sentence about GPUs that answered when the worker started, and do not any more."""
        faults = {} if self.gpus is None else self.gpus.faults()
        listed = ", ".join(f"{name} ({reason})" for name, reason in faults.items())
        return f"GPUs of this worker do not answer any more: {listed}. {LOST}" if listed else None

    def info(self) -> dict[str, Any]:
        """Return the memory in bytes, the load, package versions, and why GPUs are not used."""
        self._notice_lost_gpus()
        total, problem = total_memory(), self.accelerators.problem or self.refusal
        unsupported = list(self.accelerators.unsupported)
        return {
            **({"unsupported_gpus": unsupported} if unsupported else {}),
            **({} if problem is None else {"no_gpu": problem}),
            **({} if self.refusal is None else {"refuses": self.refusal}),
            **self._gpu_facts(),
            "python": platform.python_version(),
            "packages": _versions(),
            "cores": cores(),
            "load": os.getloadavg()[0],
            "memory_bytes": total,
            "memory_used": max(0, total - available_memory()),
        }


def preallocated(environment: Mapping[str, str]) -> float | None:
    """Return the share of a GPU that JAX takes at the start of each run; None: on demand."""
    if Environment.grows_on_demand(environment):
        return None
    text = environment.get(MEMORY_FRACTION) or environment.get(OLD_MEMORY_FRACTION) or ""
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return PREALLOCATED


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
