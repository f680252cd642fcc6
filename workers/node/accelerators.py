"""Decides which GPUs a worker uses, and explains why it leaves its machine's GPUs unused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from workers.node.gpu_claims import GpuClaims
from workers.node.gpus import VISIBLE, DriverError, Gpu, Nvml, visible

PLUGINS = ("jax-cuda13-plugin", "jax-cuda12-plugin")
"""JAX's support of CUDA; `requirements-gpu.lock` installs the first one."""
HOW_TO_INSTALL = "Run make setup-gpu, then restart the worker"
ON_CPU = "This worker trains on the CPU and takes no job with a GPU mesh."


@dataclass(frozen=True)
class Accelerators:
    """The GPUs that this worker has claimed.

    Attributes:
        gpus: in CUDA_VISIBLE_DEVICES order.
        problem: why the machine's GPUs are not used, for its administrator; None if all is as intended.
        nvml: reads the GPUs' figures; None without GPUs.
    """

    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None
    nvml: Nvml | None = None

    def devices(self) -> list[dict[str, Any]]:
        """Return the GPUs for the worker's row; memory in bytes, load from 0 to 1."""
        if self.nvml is None:
            return []
        return [
            {"name": gpu.name, "kind": gpu.model, "uuid": gpu.uuid, **self.nvml.figures(gpu)}
            for gpu in self.gpus
        ]


def find(slots: int | None, environment: Mapping[str, str], claims: GpuClaims) -> Accelerators:
    """Claim this worker's GPUs: one for each slot, or all that are free if `slots` is None."""
    # The operator has decided against GPUs.
    if environment.get("JAX_PLATFORMS") == "cpu":
        return Accelerators()
    try:
        nvml = Nvml.open()
        gpus = [] if nvml is None else nvml.gpus()
    except DriverError as error:
        return Accelerators(problem=f"The NVIDIA driver does not answer: {error}. {ON_CPU}")
    if nvml is None or not gpus or environment.get(VISIBLE) in ("", "-1"):
        return Accelerators()
    allowed = visible(nvml, gpus, environment)
    if not allowed:
        sentence = f"{VISIBLE}={environment[VISIBLE]} names no GPU of this machine, which has {_list(gpus)}"
        return Accelerators(problem=f"{sentence}. {ON_CPU}")
    if (problem := plugin_problem()) is not None:
        return Accelerators(problem=f"This machine has {_list(allowed)}, but {problem}. {ON_CPU}")
    claimed = claims.claim(allowed, slots)
    if not claimed:
        sentence = f"Other workers of this machine use {_list(allowed)}"
        return Accelerators(problem=f"{sentence}. {ON_CPU}")
    return Accelerators(tuple(claimed), None, nvml)


def plugin_problem() -> str | None:
    """Return why JAX cannot use a GPU, as a clause with what to do; None if it can."""
    # Only versions are read: importing JAX would take a second.
    jaxlib = version("jaxlib")
    installed = {name: present for name in PLUGINS if (present := _version(name)) is not None}
    if not installed:
        return f"JAX's CUDA plugin is not installed. {HOW_TO_INSTALL}"
    # JAX ignores a plugin of another version and uses the CPU.
    if jaxlib not in installed.values():
        others = ", ".join(f"{name} {number}" for name, number in installed.items())
        return f"{others} does not fit jaxlib {jaxlib}. {HOW_TO_INSTALL}"
    return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _list(gpus: Sequence[Gpu]) -> str:
    """Return the GPUs' names for a sentence."""
    return ", ".join(f"{gpu.name} ({gpu.model})" for gpu in gpus)
