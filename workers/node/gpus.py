"""Finds the NVIDIA GPUs in this machine that the worker may use, and reads their memory and load."""

import importlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

log = logging.getLogger(__name__)

VISIBLE = "CUDA_VISIBLE_DEVICES"


class DriverError(Exception):
    """The NVIDIA driver is installed, but it does not answer."""


@dataclass(frozen=True)
class Gpu:
    """One GPU, or a part of a divided (MIG) GPU.

    Attributes:
        name: its name on pages and in specs, such as `gpu:0`, numbered as by `nvidia-smi`.
        cuda_id: its entry in CUDA_VISIBLE_DEVICES.
        uuid: the same on every boot and in every container.
        model: such as `NVIDIA H200`.
        handle: NVML's handle.
        minor: its device file's number; None for a part of a GPU, and where it is unknown.
    """

    name: str
    cuda_id: str
    uuid: str
    model: str
    handle: Any = field(compare=False)
    minor: int | None = None


class Nvml:
    """Reads GPUs through NVIDIA's management library, without JAX, which would allocate their memory."""

    def __init__(self, library: Any) -> None:
        self._library = library

    @classmethod
    def open(cls) -> "Nvml | None":
        """Return the library, or None on a machine without an NVIDIA driver.

        Raises:
            DriverError: there is a driver, but it does not answer.
        """
        try:
            library = importlib.import_module("pynvml")
        except ImportError:  # it is installed on Linux only
            return None
        try:
            library.nvmlInit()
            return cls(library)
        except (library.NVMLError_LibraryNotFound, library.NVMLError_DriverNotLoaded):
            return None
        except library.NVMLError as error:
            raise DriverError(str(error)) from error

    def gpus(self) -> list[Gpu]:
        """Return the machine's GPUs, in PCI_BUS_ID order.

        Raises:
            DriverError: the driver does not answer.
        """
        try:
            return [self._gpu(index) for index in range(self._library.nvmlDeviceGetCount())]
        except self._library.NVMLError as error:
            raise DriverError(str(error)) from error

    def part(self, uuid: str) -> Gpu | None:
        """Return the part of a divided GPU with this UUID; None if there is none."""
        nvml = self._library
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
            whole = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
            name = f"gpu:{nvml.nvmlDeviceGetIndex(whole)}.{nvml.nvmlDeviceGetIndex(handle)}"
            return Gpu(name, uuid, uuid, _text(nvml.nvmlDeviceGetName(handle)), handle)
        except nvml.NVMLError:
            return None

    def figures(self, gpu: Gpu) -> dict[str, Any]:
        """Return memory in bytes and load from 0 to 1, as far as the GPU reports them."""
        nvml, figures = self._library, dict[str, Any]()
        # Parts of a GPU report no load, and a GPU that fails while the worker runs reports nothing.
        try:
            memory = nvml.nvmlDeviceGetMemoryInfo(gpu.handle)
            figures |= {"memory_bytes": memory.total, "memory_used": memory.used}
            figures["load"] = nvml.nvmlDeviceGetUtilizationRates(gpu.handle).gpu / 100
        except nvml.NVMLError as error:
            log.debug("%s does not report all of its figures: %s", gpu.name, error)
        return figures

    def fault(self, gpu: Gpu) -> str | None:
        """Return why a GPU does not answer any more; None if it answers."""
        nvml = self._library
        try:
            nvml.nvmlDeviceGetMemoryInfo(gpu.handle)
        except nvml.NVMLError as error:
            # Some GPUs and some containers report no memory. They answer.
            code = getattr(error, "value", None)
            silent = (
                getattr(nvml, name, object())
                for name in ("NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_NO_PERMISSION")
            )
            return None if code in tuple(silent) else str(error)
        return None

    def _gpu(self, index: int) -> Gpu:
        handle = self._library.nvmlDeviceGetHandleByIndex(index)
        uuid, model = self._library.nvmlDeviceGetUUID(handle), self._library.nvmlDeviceGetName(handle)
        return Gpu(f"gpu:{index}", str(index), _text(uuid), _text(model), handle, self._minor(handle))

    def _minor(self, handle: Any) -> int | None:
        try:
            return int(self._library.nvmlDeviceGetMinorNumber(handle))
        except self._library.NVMLError:
            return None


def visible(nvml: Nvml, gpus: Sequence[Gpu], environment: Mapping[str, str]) -> list[Gpu]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES allows, in its order; all if it is not set.

    As in CUDA, an entry that names no GPU hides those behind it. Numbers count in PCI_BUS_ID order.
    """
    if VISIBLE not in environment:
        return list(gpus)
    return list(dict.fromkeys(_select_gpus(nvml, gpus, environment[VISIBLE])))


def _select_gpus(nvml: Nvml, gpus: Sequence[Gpu], value: str) -> Iterator[Gpu]:
    for entry in map(str.strip, value.split(",")):
        gpu = nvml.part(entry) if entry.startswith("MIG-") else _find_gpu(gpus, entry)
        if gpu is None:
            if entry not in ("", "-1"):
                log.warning("%s=%s: there is no GPU %s; it hides those behind it", VISIBLE, value, entry)
            return
        yield gpu


def _find_gpu(gpus: Sequence[Gpu], entry: str) -> Gpu | None:
    if entry.isdecimal():
        return next((gpu for gpu in gpus if gpu.cuda_id == str(int(entry))), None)
    # The beginning of a UUID is enough if it belongs to one GPU only.
    matching = [gpu for gpu in gpus if entry.startswith("GPU-") and gpu.uuid.startswith(entry)]
    return matching[0] if len(matching) == 1 else None


def _text(value: str | bytes) -> str:
    # Older versions of pynvml return bytes.
    return value.decode() if isinstance(value, bytes) else value
