"""Decides which GPUs the installed JAX can use: by NVIDIA's driver and each GPU's compute capability."""

import importlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from workers.system.cuda_needs import NEWEST_FIRST, CudaNeeds, capability_text, needs_of

log = logging.getLogger(__name__)

RESTART = "then restart the worker"


class Card(Protocol):
    """A GPU as the driver's library knows it."""

    @property
    def name(self) -> str:
        """Return its name on pages, such as `gpu:0`."""

    @property
    def model(self) -> str:
        """Return its model, such as `NVIDIA H200`."""

    @property
    def handle(self) -> Any:
        """Return the library's handle."""


@dataclass(frozen=True)
class GpuSupport[Gpu: Card]:
    """The GPUs that JAX can use, and why not the others.

    Attributes:
        usable: in the given order.
        refused: a sentence without a full stop for each other GPU.
        problem: why none can be used, for the worker's administrator; None if some can.
    """

    usable: tuple[Gpu, ...]
    refused: tuple[str, ...] = ()
    problem: str | None = None


def check[Gpu: Card](gpus: Sequence[Gpu], release: int) -> GpuSupport[Gpu]:
    """Divide GPUs into those that JAX can use and the others. The driver's library is open.

    Args:
        gpus: those that the worker may use.
        release: the CUDA release that is installed with JAX.
    """
    needs, library = needs_of(release), importlib.import_module("pynvml")
    if (problem := _driver_problem(library, needs)) is not None:
        return GpuSupport((), problem=problem)
    capabilities = {gpu.name: _capability(library, gpu) for gpu in gpus}
    refused = {
        gpu.name: _describe(gpu, found, needs)
        for gpu in gpus
        if (found := capabilities[gpu.name]) is not None and found < needs.capability
    }
    reasons = tuple(refused.values())
    for reason in reasons:
        log.warning("this worker does not use a GPU: %s", reason)
    usable = tuple(gpu for gpu in gpus if gpu.name not in refused)
    return GpuSupport(usable, reasons, None if usable else "; ".join(reasons))


def _driver_problem(library: Any, needs: CudaNeeds) -> str | None:
    version = _text(_ask(library, "nvmlSystemGetDriverVersion"))
    if needs.has_driver(version):
        return None
    too_old = (
        f"NVIDIA's driver {version} is too old for JAX's CUDA {needs.release}, which needs {needs.driver} or "
        "newer"
    )
    older = next((other for other in NEWEST_FIRST if other.has_driver(version)), None)
    if older is None:
        return f"{too_old}. Update the driver"
    command = f"make setup-gpu CUDA={older.release}"
    return f"{too_old}. Update the driver, or run {command}, {RESTART}"


def _capability(library: Any, gpu: Card) -> tuple[int, int] | None:
    """Return a GPU's compute capability; None if the driver does not report it, as for parts of GPUs."""
    found = _ask(library, "nvmlDeviceGetCudaComputeCapability", gpu.handle)
    return None if found is None else (int(found[0]), int(found[1]))


def _describe(gpu: Card, capability: tuple[int, int], needs: CudaNeeds) -> str:
    """Return why a GPU is refused, with the release that supports it.

    Example:
        `GPU 0 (Tesla K80, compute capability 3.7): JAX's CUDA 12 needs 5.2`
    """
    number = gpu.name.partition(":")[2]
    sentence = (
        f"GPU {number} ({gpu.model}, compute capability {capability_text(capability)}): JAX's CUDA "
        f"{needs.release} needs {capability_text(needs.capability)}"
    )
    other = next((other for other in NEWEST_FIRST if capability >= other.capability), None)
    return sentence if other is None else f"{sentence}; make setup-gpu CUDA={other.release} supports it"


def _ask(library: Any, name: str, *arguments: Any) -> Any:
    """Return the driver's answer; None if this card, this driver or this library gives none."""
    function = getattr(library, name, None)
    try:
        return None if function is None else function(*arguments)
    except library.NVMLError as error:
        log.debug("%s: %s", name, error)
        return None


def _text(value: str | bytes | None) -> str:
    # Older versions of pynvml return bytes.
    return value.decode() if isinstance(value, bytes) else value or ""
