"""GPUs that the installed JAX cannot use are left out, each with its name and compute capability."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.supervise.node.test_gpus import names
from workers.node import accelerators
from workers.node.accelerators import Accelerators, find
from workers.node.gpu_inventory.claims import GpuClaims
from workers.node.inventory import Inventory

type Card = tuple[str, tuple[int, int] | None]

H200, T4, V100, K80 = (
    ("NVIDIA H200", (9, 0)),
    ("Tesla T4", (7, 5)),
    ("Tesla V100", (7, 0)),
    ("Tesla K80", (3, 7)),
)


class NvmlError(Exception):
    """The base class for the library's errors."""


class Box:
    """Answers as the module `pynvml` does on a machine with these GPUs and this driver."""

    NVMLError = NvmlError
    NVMLError_LibraryNotFound = NVMLError_DriverNotLoaded = type("NotFound", (NvmlError,), {})

    def __init__(self, driver: str, *cards: Card) -> None:
        self.driver, self.cards = driver, cards

    def nvmlInit(self) -> None:  # noqa: N802
        """Do nothing."""

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}-{os.getpid()}-{id(self)}"

    def nvmlDeviceGetMinorNumber(self, handle: int) -> int:  # noqa: N802
        return handle

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(total=100, used=handle)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=50)

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        if not self.driver:
            raise NvmlError("unknown")
        return self.driver.encode()

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return self.cards[handle][0].encode()

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:  # noqa: N802
        capability = self.cards[handle][1]
        if capability is None:
            raise NvmlError("Not Supported")
        return capability


@pytest.fixture
def claims() -> Any:
    gpu_claims = GpuClaims()
    yield gpu_claims
    gpu_claims.close()


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, claims: GpuClaims) -> Any:
    """Returns a function that looks for the GPUs of a machine on which one CUDA release is installed."""

    def look(release: int, driver: str, *cards: Card) -> Accelerators:
        monkeypatch.setitem(sys.modules, "pynvml", Box(driver, *cards))
        versions = {"jaxlib": "0.12.0.1", f"jax-cuda{release}-plugin": "0.12.0.1"}
        monkeypatch.setattr(accelerators, "version", versions.__getitem__)
        monkeypatch.setattr(accelerators, "_version", versions.get)
        return find(None, {}, claims)

    return look


@pytest.mark.parametrize(
    ("release", "cards", "used", "refused"),
    [
        (13, [H200, T4], ["gpu:0", "gpu:1"], []),
        (12, [V100, T4], ["gpu:0", "gpu:1"], []),
        (
            13,
            [V100, H200],
            ["gpu:1"],
            ["GPU 0 (Tesla V100, compute capability 7.0): JAX's CUDA 13 needs 7.5; make setup-gpu CUDA=12 "
             "supports it"],
        ),
        (12, [H200, K80], ["gpu:0"], ["GPU 1 (Tesla K80, compute capability 3.7): JAX's CUDA 12 needs 5.2"]),
        (12, [("Old driver's part", None)], ["gpu:0"], []),
    ],
)  # fmt: skip
def test_a_worker_uses_the_gpus_that_its_cuda_release_supports(
    found: Any, release: int, cards: list[Card], used: list[str], refused: list[str]
) -> None:
    hardware = found(release, "580.65.06", *cards)
    assert names(hardware) == used
    assert list(hardware.unsupported) == refused
    assert not hardware.refuses and hardware.problem is None


def test_a_machine_whose_only_gpu_is_too_old_takes_no_work_and_names_it(
    found: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hardware = found(12, "535.183.01", K80)
    sentence = "GPU 0 (Tesla K80, compute capability 3.7): JAX's CUDA 12 needs 5.2"
    assert hardware.refuses and hardware.gpus == ()
    assert hardware.problem.startswith(
        f"JAX can use no GPU of this machine. {sentence}. The worker takes no work"
    )
    assert sentence in caplog.text


@pytest.mark.parametrize(
    ("release", "driver", "words"),
    [
        (
            13,
            "535.183.01",
            "needs 580 or newer. Update the driver, or run make setup-gpu CUDA=12, then restart",
        ),
        (12, "470.256.02", "JAX's CUDA 12, which needs 525 or newer. Update the driver. The worker"),
    ],
)
def test_a_driver_that_is_too_old_for_the_release_is_named(
    found: Any, release: int, driver: str, words: str
) -> None:
    hardware = found(release, driver, T4)
    assert hardware.refuses
    assert f"driver {driver} is too old for JAX's CUDA {release}" in hardware.problem
    assert words in hardware.problem


def test_a_driver_without_a_version_is_used(found: Any) -> None:
    assert names(found(13, "", T4)) == ["gpu:0"]


def test_the_workers_row_has_the_reasons(found: Any) -> None:
    info = Inventory(found(13, "580.65.06", V100, H200)).info()
    assert info["unsupported_gpus"][0].startswith("GPU 0 (Tesla V100, compute capability 7.0)")
    assert "refuses" not in info
    assert "unsupported_gpus" not in Inventory(Accelerators()).info()
