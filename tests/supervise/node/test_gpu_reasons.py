"""Why a worker uses no GPU, and when it takes no work because of it: on fake machines."""

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gpu_box import LibraryNotFound as NotFound
from tests.gpu_box import NvmlError
from tests.supervise.node.test_gpus import FakeNvml
from workers.node import accelerators
from workers.node.accelerators import CHOOSE_CPU, Accelerators, find
from workers.node.gpu_inventory.claims import GpuClaims
from workers.node.inventory import Inventory
from workers.system import gpu_signs
from workers.system.gpu_signs import GpuSigns, read_signs
from workers.system.jax_platforms import PlatformDevice, Probe

BOTH = gpu_signs.LIBRARIES
MODULE_FILE, GPU_FILES = gpu_signs.MODULE[1:], ("dev/nvidiactl", "dev/nvidia0", "dev/nvidia-uvm")


@pytest.fixture
def claims() -> Iterator[GpuClaims]:
    gpu_claims = GpuClaims()
    yield gpu_claims
    gpu_claims.close()


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The management library finds no driver that answers."""
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(0, NotFound("not loaded")))


def no_jax(_: Mapping[str, str]) -> Probe:
    raise AssertionError("JAX must not be started")


def machine(root: Path, *files: str, libraries: tuple[str, ...] = (), cards: int = 0) -> GpuSigns:
    """Make a machine's files below a folder, and return its signs."""
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    for number in range(cards):
        device = root / f"sys/bus/pci/devices/0000:0{number}:00.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")

    def load(name: str) -> None:
        if name not in libraries:
            raise OSError(f"{name}: cannot open shared object file")

    return read_signs(root, load)


@pytest.mark.usefixtures("no_driver")
@pytest.mark.parametrize(
    ("files", "libraries", "words"),
    [
        ((), BOTH, "libnvidia-ml.so.1 is here, but NVIDIA's kernel module is not loaded"),
        ((), BOTH[1:], "libcuda.so.1 is here, but NVIDIA's kernel module is not loaded"),
        (GPU_FILES, (), "the device file /dev/nvidia0 is here, but NVIDIA's kernel module is not loaded"),
        ((MODULE_FILE, *GPU_FILES), (), "library libnvidia-ml.so.1 cannot be loaded. Install the driver's"),
        ((MODULE_FILE,), BOTH, "there is no device file /dev/nvidia0. Run nvidia-smi as root"),
        ((MODULE_FILE, *GPU_FILES), BOTH[:1], "its library libcuda.so.1 cannot be loaded"),
        ((MODULE_FILE, *GPU_FILES), BOTH, "shows no GPU. Run nvidia-smi"),
        ((MODULE_FILE, ".dockerenv"), (), "NVIDIA's runtime did not start this container"),
        ((MODULE_FILE, "run/.containerenv"), BOTH, "NVIDIA's runtime did not start this container"),
        ((".dockerenv",), BOTH, "Load it on the host with modprobe nvidia"),
    ],
)
def test_a_part_of_the_driver_that_is_missing_is_named_and_the_worker_takes_no_work(
    tmp_path: Path, claims: GpuClaims, files: tuple[str, ...], libraries: tuple[str, ...], words: str
) -> None:
    signs = machine(tmp_path, *files, libraries=libraries)
    hardware = find(None, {}, claims, signs=lambda: signs, start_jax=no_jax)
    assert hardware.refuses and hardware.gpus == ()
    assert words.lower() in (hardware.problem or "").lower()
    assert (hardware.problem or "").endswith(CHOOSE_CPU), "it names the way to train on the CPU"
    assert find(None, {"JAX_PLATFORMS": "cpu"}, claims, signs=lambda: signs) == Accelerators()


@pytest.mark.usefixtures("no_driver")
def test_device_files_that_the_user_may_not_open_are_named(claims: GpuClaims) -> None:
    signs = GpuSigns(BOTH, has_module=True, files=("/dev/nvidia0",), is_closed=True)
    problem = find(None, {}, claims, signs=lambda: signs).problem or ""
    assert problem.startswith("This user may not open /dev/nvidia0 and /dev/nvidiactl.")


@pytest.mark.usefixtures("no_driver")
def test_a_card_without_any_driver_is_told_but_the_worker_works(tmp_path: Path, claims: GpuClaims) -> None:
    signs = machine(tmp_path, cards=2)
    hardware = find(None, {}, claims, signs=lambda: signs)
    assert not hardware.refuses
    assert hardware.problem == (
        "This machine has 2 cards of NVIDIA, but NVIDIA's driver is not installed. This worker trains on the "
        "CPU and takes no job with a GPU mesh."
    )


@pytest.mark.usefixtures("no_driver")
def test_a_machine_without_signs_of_a_gpu_trains_on_the_cpu_without_a_word(
    tmp_path: Path, claims: GpuClaims
) -> None:
    signs = machine(tmp_path, ".dockerenv", "dev/null")
    assert find(None, {}, claims, signs=lambda: signs, start_jax=no_jax) == Accelerators()


@pytest.mark.parametrize("value", ["", "-1"])
def test_gpus_that_an_operator_hides_are_told_and_the_worker_works(
    claims: GpuClaims, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(1))
    hardware = find(None, {"CUDA_VISIBLE_DEVICES": value}, claims)
    assert not hardware.refuses
    assert (hardware.problem or "").startswith(f"CUDA_VISIBLE_DEVICES={value} hides all GPUs of this machine")


@pytest.mark.parametrize("value", ["7", "NoDevFiles", "GPU-0000", "MIG-none", "a,0"])
def test_ids_that_name_no_gpu_are_refused(
    claims: GpuClaims, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(1))
    hardware = find(None, {"CUDA_VISIBLE_DEVICES": value}, claims)
    assert hardware.refuses
    assert f"CUDA_VISIBLE_DEVICES={value} names no GPU of this machine, which has gpu:0" in (
        hardware.problem or ""
    )


def test_a_driver_that_answers_with_an_error_is_refused(
    claims: GpuClaims, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(1, NvmlError("Driver/library version mismatch")))
    hardware = find(None, {}, claims)
    assert hardware.refuses
    assert "does not answer: Driver/library version mismatch." in (hardware.problem or "")


@pytest.mark.usefixtures("no_driver")
@pytest.mark.parametrize("value", ["cuda", "cuda,cpu", "gpu"])
def test_a_gpu_that_was_asked_for_and_is_not_there_is_refused_with_the_words_of_jax(
    claims: GpuClaims, value: str
) -> None:
    answer = Probe(error="Unable to initialize backend 'cuda': no device.")
    hardware = find(None, {"JAX_PLATFORMS": value}, claims, signs=GpuSigns, start_jax=lambda _: answer)
    assert hardware.refuses
    assert (hardware.problem or "").startswith(
        f"JAX_PLATFORMS={value} asks for a GPU. This machine has no GPU of NVIDIA. JAX: Unable to initialize "
        "backend 'cuda': no device. The worker takes no work"
    )


def test_a_gpu_that_was_asked_for_and_hidden_is_refused(
    claims: GpuClaims, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(1))
    environment = {"JAX_PLATFORMS": "cuda", "CUDA_VISIBLE_DEVICES": ""}
    hardware = find(None, environment, claims, start_jax=lambda _: Probe(error="no plugin"))
    assert hardware.refuses
    assert "hides all GPUs" in (hardware.problem or "")


def test_devices_that_only_jax_knows_are_reported(claims: GpuClaims) -> None:
    answer = Probe((PlatformDevice("tpu", 0, "TPU v5"), PlatformDevice("tpu", 1, "TPU v5")))
    hardware = find(None, {"JAX_PLATFORMS": "tpu"}, claims, start_jax=lambda _: answer)
    assert not hardware.refuses
    assert [device["name"] for device in Inventory(hardware).devices()] == ["tpu:0", "tpu:1"]


class LostNvml(FakeNvml):
    """A library whose first GPU can be lost."""

    NVML_ERROR_NOT_SUPPORTED = 3
    reason: Exception | None = None

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        if self.reason is not None and handle == self.box.gpus[0].uuid:
            raise self.reason
        return SimpleNamespace(total=100, used=0)


def test_a_gpu_that_is_lost_while_the_worker_runs_ends_its_readiness_until_it_answers(
    claims: GpuClaims, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    library = LostNvml(2)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(accelerators, "plugin_problem", lambda: None)
    inventory = Inventory(find(None, {}, claims))
    assert "refuses" not in inventory.info() and inventory.refusal is None
    library.reason = NvmlError("GPU is lost")
    sentence = "GPUs of this worker do not answer any more: gpu:0 (GPU is lost)."
    for _ in range(2):
        assert inventory.info()["refuses"].startswith(sentence)
    assert (inventory.refusal or "").startswith(sentence)
    assert caplog.text.count("do not answer any more") == 1, "it is logged once"
    library.reason = None
    assert "refuses" not in inventory.info() and inventory.refusal is None


def test_a_gpu_that_reports_no_memory_is_not_lost(claims: GpuClaims, monkeypatch: pytest.MonkeyPatch) -> None:
    library = LostNvml(1)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(accelerators, "plugin_problem", lambda: None)
    inventory = Inventory(find(None, {}, claims))
    library.reason = NvmlError("Not Supported")
    library.reason.value = library.NVML_ERROR_NOT_SUPPORTED
    assert "refuses" not in inventory.info()


def test_a_run_that_could_not_use_its_gpu_keeps_others_away_for_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inventory = Inventory(Accelerators())
    inventory.gpu_failed("CUDA driver version is insufficient")
    assert "takes no work for a minute: CUDA driver version" in inventory.info()["refuses"]
    assert inventory.info()["no_gpu"] == inventory.refusal
    later = time.monotonic() + 60
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert inventory.refusal is None and "refuses" not in inventory.info()
