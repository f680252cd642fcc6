"""Collects the reproducibility record: everything a result depends on besides its spec."""

import functools
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from jobs.messages.task import Task
from workers.runner.environment import Environment

PACKAGES = ("keras", "jax", "jaxlib", "numpy", "scikit-learn", "pandas", "pyarrow", "ml_dtypes")


def make_record(task: Task, environment: Environment) -> dict[str, Any]:
    """Return versions, machine, devices, threads, flags, seed and digests. Imports no package."""
    spec = getattr(task, "spec", None)
    dataset = getattr(task, "dataset", None)
    # Tasks that do not need JAX have not imported it, and must not do so for their record.
    jax = sys.modules.get("jax")
    devices = [] if jax is None else jax.devices()
    # Inside this process, devices are numbered from 0.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return {
        "python": platform.python_version(),
        "packages": versions(),
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": environment.threads,
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "devices": [_device(device, visible) for device in devices],
        "seed": None if spec is None else spec.fit.seed,
        "spec_digest": None if spec is None else spec.digest(),
        "dataset_digest": None if dataset is None else dataset.digest,
    }


def _device(device: Any, visible: Sequence[str]) -> dict[str, Any]:
    device_record = {"id": device.id, "platform": device.platform, "kind": device.device_kind}
    if device.platform == "gpu" and device.id < len(visible):
        device_record["cuda_visible_device"] = visible[device.id]
    return device_record


# Cached, because the lookup reads every folder of sys.path. Forks inherit the result.
@functools.cache
def versions() -> dict[str, str]:
    """Return the installed versions for the packages a result depends on."""
    return {name: version(name) for name in PACKAGES}


@functools.cache
def cpu_model() -> str:
    """Return the processor's name as the kernel reports it."""
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor()
