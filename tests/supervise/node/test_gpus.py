"""The GPUs that a worker uses, on a fake NVIDIA library."""

import subprocess
import sys
import uuid
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from tests import gpu_box
from tests.gpu_box import NOT_SUPPORTED, FakePart, GpuBox, NvmlError
from tests.gpu_box import LibraryNotFound as NotFound
from workers.node import accelerators
from workers.node.accelerators import Accelerators, find
from workers.node.gpu_inventory.claims import GpuClaims
from workers.node.inventory import Inventory
from workers.system.gpu_signs import GpuSigns

ROOT = Path(__file__).resolve().parents[3]
BOOT = uuid.uuid4().hex
"""Part of every UUID, so that tests that run at the same time claim different GPUs."""


class FakeNvml(gpu_box.FakeNvml):
    """A machine whose first GPU is divided into two parts and whose second one reports no load."""

    def __init__(self, count: int, fault: Exception | None = None) -> None:
        box = GpuBox.of(count, BOOT, model="NVIDIA H200", memory=100, reserved=0)
        super().__init__(box)
        self.fault = fault
        for number, gpu in enumerate(box.gpus):
            gpu.load, gpu.hidden = 50, number
        for gpu in box.gpus[:1]:
            gpu.parts = [FakePart("MIG-a", 50), FakePart("MIG-b", 50)]
        for gpu in box.gpus[1:2]:
            gpu.faults["UtilizationRates"] = NOT_SUPPORTED

    def nvmlInit(self) -> None:  # noqa: N802
        if self.fault is not None:
            raise self.fault


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Claims on a machine with four GPUs and the CUDA plugin."""
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(4))
    monkeypatch.setattr(accelerators, "plugin_problem", lambda: None)
    gpu_claims = GpuClaims()
    yield gpu_claims
    gpu_claims.close()


def names(hardware: Accelerators) -> list[str]:
    return [gpu.name for gpu in hardware.gpus]


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
        "import sys; from workers.node.gpu_inventory.claims import GpuClaims;"
        "from workers.node.gpu_inventory.gpus import Gpu;"
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
    assert find(None, {}, claims, signs=GpuSigns) == Accelerators()
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(0, NotFound("no library")))
    assert find(None, {}, claims, signs=GpuSigns) == Accelerators()
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(4))
    assert find(None, {"JAX_PLATFORMS": "cpu"}, claims) == Accelerators(), "the operator chose the CPU"


def test_a_gpu_that_cannot_be_used_is_explained(claims: GpuClaims, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerators, "plugin_problem", lambda: "JAX's CUDA plugin is not installed")
    hardware = find(None, {}, claims)
    assert hardware.gpus == ()
    assert "has gpu:0 (NVIDIA H200), " in (hardware.problem or "")
    assert "but JAX's CUDA plugin is not installed. The worker takes no work" in (hardware.problem or "")
    assert hardware.refuses
    inventory = Inventory(hardware)
    assert inventory.info()["no_gpu"] == inventory.info()["refuses"] == inventory.refusal == hardware.problem
    assert Inventory(hardware).devices()[0]["kind"] == "cpu"
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
    message = accelerators.plugin_problem()
    assert (message is None) == (problem is None)
    assert problem is None or problem in (message or "")


def test_a_gpu_is_reported_with_its_model_its_uuid_and_the_figures_that_it_has(claims: GpuClaims) -> None:
    first, second, *_ = Inventory(find(None, {}, claims)).devices()
    parts = [
        {"name": f"gpu:0.{number}", "kind": "NVIDIA H200", "uuid": uuid, "memory_bytes": 50, "memory_used": 0}
        for number, uuid in enumerate(("MIG-a", "MIG-b"))
    ]
    assert first == {
        "name": "gpu:0", "kind": "NVIDIA H200", "uuid": f"GPU-0{BOOT}", "pci": "00000000:01:00.0",
        "memory_bytes": 100, "memory_used": 0, "load": 0.5, "temperature": 40.0, "power_watts": 60.0,
        "parts": parts, "others": [],
    }  # fmt: skip
    assert "load" not in second
