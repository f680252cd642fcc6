"""Finds the NVIDIA GPUs in this machine that the worker may use, and reads their memory and load."""

import importlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

log = logging.getLogger(__name__)

VISIBLE = "CUDA_VISIBLE_DEVICES"
TEMPERATURE_OF_GPU = 0
"""NVML's number of the sensor on the chip."""
PROCESS_KINDS = ("Compute", "Graphics", "MPSCompute")


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
        pci: its address on the PCI bus, whose order is that of the numbers; empty where it is unknown.
    """

    name: str
    cuda_id: str
    uuid: str
    model: str
    handle: Any = field(compare=False)
    minor: int | None = None
    pci: str = ""


class GpuProcess(NamedTuple):
    """A process that has memory on a GPU, as the driver reports it.

    Attributes:
        pid: its number; in a container it may be that of the host.
        memory_bytes: None if the driver does not report it, as for parts of GPUs and under Windows.
    """

    pid: int
    memory_bytes: int | None


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
            model = _text(nvml.nvmlDeviceGetName(handle))
            return Gpu(name, uuid, uuid, model, handle, pci=self._pci(whole))
        except nvml.NVMLError:
            return None

    def parts(self, gpu: Gpu) -> list[Gpu] | None:
        """Return the parts of a GPU that is divided; None if it is not."""
        mode = self._ask("nvmlDeviceGetMigMode", gpu.handle)
        if not mode or not mode[0]:
            return None
        found = []
        for index in range(self._ask("nvmlDeviceGetMaxMigDeviceCount", gpu.handle) or 0):
            handle = self._ask("nvmlDeviceGetMigDeviceHandleByIndex", gpu.handle, index)
            uuid = None if handle is None else self._ask("nvmlDeviceGetUUID", handle)
            part = None if uuid is None else self.part(_text(uuid))
            found += [] if part is None else [part]
        return found

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

    def sensors(self, gpu: Gpu) -> dict[str, float]:
        """Return temperature in degrees Celsius and power in watts, as far as the GPU reports them."""
        temperature = self._ask("nvmlDeviceGetTemperature", gpu.handle, TEMPERATURE_OF_GPU)
        milliwatts = self._ask("nvmlDeviceGetPowerUsage", gpu.handle)
        figures = {} if temperature is None else {"temperature": float(temperature)}
        return figures if milliwatts is None else {**figures, "power_watts": milliwatts / 1000}

    def processes(self, gpu: Gpu) -> list[GpuProcess] | None:
        """Return the processes with memory on a GPU; None if the driver does not list them."""
        lists = [self._ask(f"nvmlDeviceGet{kind}RunningProcesses", gpu.handle) for kind in PROCESS_KINDS]
        # Without the processes that compute, an empty list would look like an unused GPU.
        if lists[0] is None:
            return None
        found: dict[int, int | None] = {}
        for row in (row for rows in lists for row in rows or ()):
            # A process that computes and draws is in two lists, with the same memory.
            found[row.pid] = _larger(found.get(row.pid), row.usedGpuMemory)
        return [GpuProcess(pid, memory) for pid, memory in sorted(found.items())]

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
        name, minor = f"gpu:{index}", self._ask("nvmlDeviceGetMinorNumber", handle)
        return Gpu(name, str(index), _text(uuid), _text(model), handle, minor, self._pci(handle))

    def _pci(self, handle: Any) -> str:
        info = self._ask("nvmlDeviceGetPciInfo", handle)
        return "" if info is None else _text(info.busId)

    def _ask(self, name: str, *arguments: Any) -> Any:
        """Return a driver's answer; None if this card, this driver or this user gets none."""
        function = getattr(self._library, name, None)
        try:
            return None if function is None else function(*arguments)
        except self._library.NVMLError as error:
            log.debug("%s: %s", name, error)
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


def _larger(first: int | None, second: int | None) -> int | None:
    return max((count for count in (first, second) if count is not None), default=None)


def _text(value: str | bytes) -> str:
    # Older versions of pynvml return bytes.
    return value.decode() if isinstance(value, bytes) else value
