"""The GPUs that a worker uses, on a fake of NVIDIA's library."""

import subprocess
import sys
import uuid
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.messages.sandbox import Level, LevelState
from jobs.messages.task import OwnCode
from workers.confinement.sandbox.gpus import GpuAccess, SandboxGpu
from workers.confinement.start.files import ProcessFiles
from workers.node import accelerators
from workers.node.accelerators import Accelerators, find
from workers.node.gpu_claims import GpuClaims
from workers.node.inventory import Inventory
from workers.supervise.attempt.devices import Devices
from workers.supervise.limits.sandbox_limits import GIB, SandboxLimits
from workers.supervise.pool.runner_sandbox import SandboxNeeds
from workers.supervise.pool.sandbox_gpus import SandboxGpus
from workers.supervise.pool.sandboxes import Sandboxes
from workers.system.environment import runner_environment

ROOT = Path(__file__).resolve().parents[3]
BOOT = uuid.uuid4().hex
"""Part of every UUID, so that tests that run at the same time claim different GPUs."""


class NvmlError(Exception):
    """The base class of the library's errors."""


class NotFound(NvmlError):
    """There is no library."""


class FakeNvml:
    """Answers as the module `pynvml` does; the first GPU is divided into two parts."""

    NVMLError = NvmlError
    NVMLError_LibraryNotFound = NotFound
    NVMLError_DriverNotLoaded = NotFound

    def __init__(self, count: int, fault: Exception | None = None) -> None:
        self._count = count
        self.fault = fault

    def nvmlInit(self) -> None:  # noqa: N802
        if self.fault is not None:
            raise self.fault

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self._count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}{BOOT}"

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return b"NVIDIA H200"

    def nvmlDeviceGetMinorNumber(self, handle: int) -> int:  # noqa: N802
        return 7 - handle

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(total=100, used=handle)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        if handle == 1:
            raise NvmlError("not supported")
        return SimpleNamespace(gpu=50)

    def nvmlDeviceGetHandleByUUID(self, name: str) -> int:  # noqa: N802
        if name not in ("MIG-a", "MIG-b"):
            raise NvmlError("not found")
        return 10 + (name == "MIG-b")

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: int) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetIndex(self, handle: int) -> int:  # noqa: N802
        return handle % 10


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Claims on a machine with four GPUs and the CUDA plugin."""
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(4))
    monkeypatch.setattr(accelerators, "plugin_problem", lambda: None)
    made = GpuClaims()
    yield made
    made.close()


def names(found: Accelerators) -> list[str]:
    return [gpu.name for gpu in found.gpus]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["gpu:0", "gpu:1", "gpu:2", "gpu:3"]),
        ("2,0", ["gpu:2", "gpu:0"]),
        ("1, 3", ["gpu:1", "gpu:3"]),
        ("1,9,0", ["gpu:1"]),
        ("0,-1,1", ["gpu:0"]),
        ("1,1", ["gpu:1"]),
        ("GPU-3{boot}", ["gpu:3"]),
        ("GPU-", []),
        ("MIG-b,MIG-a", ["gpu:0.1", "gpu:0.0"]),
        ("", []),
    ],
)
def test_a_worker_uses_the_gpus_of_its_own_cuda_visible_devices(
    claims: GpuClaims, value: str | None, expected: list[str]
) -> None:
    environment = {} if value is None else {"CUDA_VISIBLE_DEVICES": value.format(boot=BOOT[:4])}
    assert names(find(None, environment, claims)) == expected


def test_two_workers_of_a_machine_share_its_gpus(claims: GpuClaims) -> None:
    second, third = GpuClaims(), GpuClaims()
    assert names(find(1, {}, claims)) == ["gpu:0"]
    assert names(find(None, {}, second)) == ["gpu:1", "gpu:2", "gpu:3"]
    late = find(None, {}, third)
    assert late.gpus == ()
    assert "Other workers of this machine use gpu:0 (NVIDIA H200), gpu:1" in (late.problem or "")
    second.close()
    assert names(find(2, {}, third)) == ["gpu:1", "gpu:2"]
    third.close()


def test_a_worker_that_was_killed_has_released_its_gpus(claims: GpuClaims) -> None:
    program = (
        "import sys; from workers.node.gpu_claims import GpuClaims; from workers.node.gpus import Gpu;"
        "claims = GpuClaims(); claimed = claims.claim([Gpu('gpu:0', '0', sys.argv[1], '', None)]);"
        "print(len(claimed), flush=True); input()"
    )
    (gpu,) = find(1, {"CUDA_VISIBLE_DEVICES": "0"}, GpuClaims()).gpus
    command = [sys.executable, "-c", program, gpu.uuid]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "1\n"
        assert claims.claim([gpu]) == []
        other.kill()
        other.wait()
        assert claims.claim([gpu]) == [gpu]


def test_a_machine_without_gpus_has_no_problem(claims: GpuClaims, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert find(None, {}, claims) == Accelerators()
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(0, NotFound("no library")))
    assert find(None, {}, claims) == Accelerators()
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(4))
    assert find(None, {"JAX_PLATFORMS": "cpu"}, claims) == Accelerators(), "the operator chose the CPU"


def test_a_gpu_that_cannot_be_used_is_explained(claims: GpuClaims, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerators, "plugin_problem", lambda: "JAX's CUDA plugin is not installed")
    found = find(None, {}, claims)
    assert found.gpus == ()
    assert "has gpu:0 (NVIDIA H200), " in (found.problem or "")
    assert "but JAX's CUDA plugin is not installed. This worker trains on the CPU" in (found.problem or "")
    assert Inventory(found).info()["no_gpu"] == found.problem
    assert Inventory(found).devices()[0]["kind"] == "cpu"
    wrong = find(None, {"CUDA_VISIBLE_DEVICES": "7"}, claims)
    assert "CUDA_VISIBLE_DEVICES=7 names no GPU" in (wrong.problem or "")
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(1, NvmlError("version mismatch")))
    assert "driver does not answer: version mismatch" in (find(None, {}, claims).problem or "")


@pytest.mark.parametrize(
    ("versions", "problem"),
    [
        ({"jaxlib": "0.12.0.1", "jax-cuda13-plugin": "0.12.0.1"}, None),
        ({"jaxlib": "0.12.0.1", "jax-cuda12-plugin": "0.12.0.1"}, None),
        ({"jaxlib": "0.12.0.1"}, "is not installed. Run make setup-gpu"),
        (
            {"jaxlib": "0.12.0.1", "jax-cuda13-plugin": "0.11.2"},
            "jax-cuda13-plugin 0.11.2 does not fit jaxlib",
        ),
    ],
)
def test_the_cuda_plugin_must_fit_jaxlib(
    monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], problem: str | None
) -> None:
    def version(package: str) -> str:
        if package not in versions:
            raise PackageNotFoundError(package)
        return versions[package]

    monkeypatch.setattr(accelerators, "version", version)
    found = accelerators.plugin_problem()
    assert (found is None) == (problem is None)
    assert problem is None or problem in (found or "")


def test_a_gpu_is_reported_with_its_model_its_uuid_and_the_figures_that_it_has(claims: GpuClaims) -> None:
    first, second, *_ = Inventory(find(None, {}, claims)).devices()
    assert first == {
        "name": "gpu:0", "kind": "NVIDIA H200", "uuid": f"GPU-0{BOOT}",
        "memory_bytes": 100, "memory_used": 0, "load": 0.5,
    }  # fmt: skip
    assert "load" not in second


def test_attempts_get_the_least_used_gpus_and_share_them_when_slots_are_more() -> None:
    devices = Devices({"gpu:2": "2", "gpu:3": "3"})
    assert [devices.take(1) for _ in range(3)] == [("2",), ("3",), ("2",)]
    assert devices.next(1) == ("3",)
    devices.give_back(("2",))
    devices.give_back(("2",))
    assert devices.take(1) == ("2",)
    assert Devices({"gpu:2": "2", "gpu:3": "3"}).take(5) == ("2", "3")
    assert Devices().take(1) == ()


def test_named_devices_are_allocated_in_the_order_of_the_mesh() -> None:
    devices = Devices({"gpu:0": "0", "gpu:1": "1", "gpu:0.1": "MIG-b"})
    assert devices.take(2, ("gpu:1", "gpu:0")) == ("1", "0")
    assert devices.take(1, ("gpu:0.1",)) == ("MIG-b",)
    assert devices.take(1, ("gpu:7",)) == ()


def test_a_runner_sees_its_gpus_only_and_numbers_them_as_the_worker_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    given = runner_environment(tmp_path, devices="2,3")
    assert (given["CUDA_VISIBLE_DEVICES"], given["CUDA_DEVICE_ORDER"]) == ("2,3", "PCI_BUS_ID")
    assert runner_environment(tmp_path)["CUDA_VISIBLE_DEVICES"] == ""


async def test_a_runner_with_code_gets_its_gpus_by_their_uuids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    access = GpuAccess("GPU-b", ("/dev/nvidiactl", "/dev/nvidia1"), ("/sys/devices",))
    code = OwnCode(digest="a", minimum=Level.LANDLOCK, network=False)
    limits = SandboxLimits().of_run(GIB)
    sandboxes, files = Sandboxes(tmp_path), ProcessFiles(tmp_path / "runner")
    for gpus, visible, devices in ((access, "GPU-b", access.devices), (None, "", ())):
        needs = SandboxNeeds(1, code, "", "", limits, gpus)
        found = sandboxes._request(needs, files, tmp_path / "work", None)
        assert (found.environment["CUDA_VISIBLE_DEVICES"], found.devices) == (visible, devices)
        assert ("/sys/devices" in found.readable) is bool(gpus)
        assert found.environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.3"
    await sandboxes.close()


def test_a_worker_reports_why_code_gets_no_gpu() -> None:
    states = [LevelState(level=Level.LANDLOCK, offered=True), LevelState(level=Level.PROCESS, offered=True)]
    assert SandboxGpus({}).problems(states) == ()
    one, several = SandboxGpus({"0": SandboxGpu("MIG-a", None)}, own_user=True).problems(states)
    assert "divided" in one or "missing" in one
    assert "sockets" in several
    refused = SandboxGpus({"0": SandboxGpu("GPU-a", 0)}, own_user=False).problems(states)
    assert all("names of threads" in problem for problem in refused)
