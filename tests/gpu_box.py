"""A machine with GPUs that does not exist, behind an NVML library that does not either.

`GpuBox` is the machine: a test changes its GPUs and the processes on them while a worker runs. `FakeNvml`
answers for it as the module `pynvml` does. In this process, put it into `sys.modules["pynvml"]`. For a worker
in another process, `write` the box to a file, name the file in `FAKE_NVML_BOX`, and put the folder
`tests/fake_nvml` on PYTHONPATH.
"""

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FILE = "FAKE_NVML_BOX"
GIB = 2**30
NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, UNKNOWN, LOST = 3, 4, 6, 999, 15
WORDS = {
    NOT_SUPPORTED: "Not Supported",
    NO_PERMISSION: "Insufficient Permissions",
    NOT_FOUND: "Not Found",
    UNKNOWN: "Unknown Error",
    LOST: "GPU is lost",
}


class NvmlError(Exception):
    """The base class for the library's errors."""

    def __init__(self, value: int | str) -> None:
        self.value = value
        super().__init__(WORDS.get(value, str(value)) if isinstance(value, int) else value)


class LibraryNotFound(NvmlError):
    """There is no library, or no driver."""


@dataclass
class FakeProcess:
    """A process with memory on a GPU; `memory` is None where the driver does not report it."""

    pid: int
    memory: int | None
    kind: str = "Compute"


@dataclass
class FakePart:
    """A part (MIG) of a divided GPU."""

    uuid: str
    memory: int
    used: int = 0
    processes: list[FakeProcess] = field(default_factory=list)


@dataclass
class FakeGpu:
    """A GPU, and what goes wrong with it.

    Attributes:
        reserved: the memory that the driver takes for itself.
        hidden: memory of processes that the driver does not list.
        faults: the code of the error that a function raises, by its name without `nvmlDeviceGet`; `*`: all.
        hangs: how long each function takes, in seconds.
    """

    uuid: str
    model: str = "NVIDIA RTX 4090"
    memory: int = 24 * GIB
    reserved: int = 300 * 2**20
    hidden: int = 0
    load: int = 0
    temperature: int = 40
    milliwatts: int = 60_000
    processes: list[FakeProcess] = field(default_factory=list)
    parts: list[FakePart] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    hangs: float = 0.0

    @property
    def used(self) -> int:
        """Return the memory in use."""
        listed = sum(process.memory or 0 for process in self.processes)
        return min(self.reserved + self.hidden + listed, self.memory)


@dataclass
class GpuBox:
    """The machine. `fault` is raised when the library is opened."""

    gpus: list[FakeGpu] = field(default_factory=list)
    fault: str = ""

    @classmethod
    def of(cls, count: int, boot: str = "", **fields: Any) -> "GpuBox":
        """Return a box with GPUs that are alike; `boot` is part of their UUIDs."""
        return cls([FakeGpu(f"GPU-{number}{boot}", **fields) for number in range(count)])

    def put(self, gpu: int, pid: int, memory: int | None, kind: str = "Compute") -> FakeProcess:
        """Let a process take memory of a GPU."""
        process = FakeProcess(pid, memory, kind)
        self.gpus[gpu].processes.append(process)
        return process

    def write(self, file: Path) -> None:
        """Write the box for a library in another process, all at once."""
        temporary = file.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self)))
        temporary.replace(file)

    @classmethod
    def read(cls, file: Path) -> "GpuBox":
        """Read a box."""
        stored = json.loads(file.read_text())
        gpus = [
            FakeGpu(
                **{
                    **gpu,
                    "processes": [FakeProcess(**process) for process in gpu["processes"]],
                    "parts": [
                        FakePart(**{**part, "processes": [FakeProcess(**row) for row in part["processes"]]})
                        for part in gpu["parts"]
                    ],
                }
            )
            for gpu in stored["gpus"]
        ]
        return cls(gpus, stored["fault"])


class FakeNvml:
    """Answers as the module `pynvml` does. Functions that it lacks are missing in an old library, too."""

    NVMLError = NvmlError
    NVMLError_LibraryNotFound = LibraryNotFound
    NVMLError_DriverNotLoaded = LibraryNotFound
    NVML_ERROR_NOT_SUPPORTED = NOT_SUPPORTED
    NVML_ERROR_NO_PERMISSION = NO_PERMISSION

    def __init__(self, box: GpuBox | None = None) -> None:
        self._box = box
        self.asked: list[str] = []

    @property
    def box(self) -> GpuBox:
        """The machine as it is now."""
        return self._box if self._box is not None else GpuBox.read(Path(os.environ[FILE]))

    def nvmlInit(self) -> None:  # noqa: N802
        if self.box.fault:
            raise (LibraryNotFound if self.box.fault == "no library" else NvmlError)(self.box.fault)

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.box.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return self.box.gpus[index].uuid

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        self._find(uuid, "HandleByUUID")
        return uuid

    def nvmlDeviceGetUUID(self, handle: str) -> str:  # noqa: N802
        return handle

    def nvmlDeviceGetIndex(self, handle: str) -> int:  # noqa: N802
        for index, gpu in enumerate(self.box.gpus):
            uuids = [part.uuid for part in gpu.parts]
            if handle in (gpu.uuid, *uuids):
                return index if handle == gpu.uuid else uuids.index(handle)
        raise NvmlError(NOT_FOUND)

    def nvmlDeviceGetName(self, handle: str) -> bytes:  # noqa: N802
        return self._gpu(handle, "Name").model.encode()

    def nvmlDeviceGetMinorNumber(self, handle: str) -> int:  # noqa: N802
        self._gpu(handle, "MinorNumber")
        return len(self.box.gpus) - 1 - self.nvmlDeviceGetIndex(handle)

    def nvmlDeviceGetPciInfo(self, handle: str) -> Any:  # noqa: N802
        self._gpu(handle, "PciInfo")
        return SimpleNamespace(busId=f"00000000:{self.nvmlDeviceGetIndex(handle) + 1:02X}:00.0")

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        found = self._find(handle, "MemoryInfo")
        return SimpleNamespace(total=found.memory, used=found.used)

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:  # noqa: N802
        found = self._find(handle, "UtilizationRates")
        if isinstance(found, FakePart):
            raise NvmlError(NOT_SUPPORTED)
        return SimpleNamespace(gpu=found.load)

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:  # noqa: N802
        assert sensor == 0
        return self._whole(handle, "Temperature").temperature

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return self._whole(handle, "PowerUsage").milliwatts

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return self._processes(handle, "Compute")

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return self._processes(handle, "Graphics")

    def nvmlDeviceGetMPSComputeRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return self._processes(handle, "MPSCompute")

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:  # noqa: N802
        divided = int(bool(self._whole(handle, "MigMode").parts))
        return [divided, divided]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:  # noqa: N802
        self._whole(handle, "MaxMigDeviceCount")
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, index: int) -> str:  # noqa: N802
        parts = self._whole(handle, "MigDeviceHandleByIndex").parts
        if index >= len(parts):
            raise NvmlError(NOT_FOUND)
        return parts[index].uuid

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: str) -> str:  # noqa: N802
        for gpu in self.box.gpus:
            if any(part.uuid == handle for part in gpu.parts):
                return gpu.uuid
        raise NvmlError(NOT_FOUND)

    def _processes(self, handle: str, kind: str) -> list[Any]:
        found = self._find(handle, f"{kind}RunningProcesses")
        return [
            SimpleNamespace(pid=process.pid, usedGpuMemory=process.memory)
            for process in found.processes
            if process.kind == kind
        ]

    def _whole(self, handle: str, function: str) -> FakeGpu:
        found = self._find(handle, function)
        if isinstance(found, FakePart):
            raise NvmlError(NOT_SUPPORTED)
        return found

    def _gpu(self, handle: str, function: str) -> FakeGpu:
        """Return a GPU, or the one to which a part belongs."""
        found = self._find(handle, function)
        if isinstance(found, FakeGpu):
            return found
        return next(gpu for gpu in self.box.gpus if found in gpu.parts)

    def _find(self, handle: str, function: str) -> FakeGpu | FakePart:
        self.asked.append(f"{function} {handle}")
        for gpu in self.box.gpus:
            if handle == gpu.uuid:
                self._fail(gpu, function)
                return gpu
            for part in gpu.parts:
                if handle == part.uuid:
                    self._fail(gpu, function)
                    return part
        raise NvmlError(NOT_FOUND)

    def _fail(self, gpu: FakeGpu, function: str) -> None:
        if gpu.hangs:
            time.sleep(gpu.hangs)
        for name in ("*", function):
            if name in gpu.faults:
                raise NvmlError(gpu.faults[name])
