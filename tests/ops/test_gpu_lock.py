"""`make setup-gpu` chooses the CUDA release by the driver and the GPUs: with a pretended nvidia-smi."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.test_locks import entries
from workers.node.accelerators import PLUGINS
from workers.system.cuda_needs import NEWEST_FIRST, CudaNeeds

ROOT = Path(__file__).resolve().parents[2]
H200, T4, V100 = "9.0, NVIDIA H200", "7.5, Tesla T4", "7.0, Tesla V100-SXM2-16GB"
GTX, K80 = "5.2, NVIDIA GeForce GTX TITAN X", "3.7, Tesla K80"
CUDA_13, CUDA_12 = "requirements-gpu.lock", "requirements-gpu12.lock"


@pytest.fixture
def smi(tmp_path: Path) -> Path:
    """A folder for PATH without nvidia-smi."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def write_smi(folder: Path, driver: str, *cards: str, old: bool = False) -> None:
    """Write an nvidia-smi that knows this machine; an old one does not know the compute capability."""
    rows = [f"{driver}, {card}" for card in cards]
    answer = "\n".join(rows) if not old else 'Field "compute_cap" is not a valid field to query.'
    plain = "\n".join(driver for _ in cards)
    file = folder / "nvidia-smi"
    file.write_text(
        f"#!/bin/sh\ncase $1 in\n*compute_cap*) cat <<'END'\n{answer}\nEND\nexit {int(old)};;\n"
        f"*) cat <<'END'\n{plain}\nEND\nesac\n"
    )
    file.chmod(0o755)


def chosen(folder: Path, cuda: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{folder}:/usr/bin:/bin", **({} if cuda is None else {"CUDA": cuda})}
    command = [sys.executable, str(ROOT / "scripts" / "gpu_lock.py")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("driver", "cards", "lock", "words"),
    [
        ("580.65.06", [H200], CUDA_13, "CUDA 13, for driver 580.65.06."),
        ("590.1", [T4, H200], CUDA_13, "CUDA 13, for driver 590.1."),
        ("579.99", [H200], CUDA_12, "CUDA 12, for driver 579.99."),
        ("525.60.13", [T4], CUDA_12, "CUDA 12, for driver 525.60.13."),
        ("580.65.06", [V100], CUDA_12, "not support Tesla V100-SXM2-16GB (compute capability 7.0)."),
        ("580.65.06", [H200, V100], CUDA_12, "CUDA 13 would not support Tesla V100"),
        ("580.65.06", [GTX], CUDA_12, "would not support NVIDIA GeForce GTX TITAN X"),
        ("580.65.06", [H200, K80], CUDA_13, "It does not support Tesla K80 (compute capability 3.7)."),
    ],
)  # fmt: skip
def test_the_release_fits_the_driver_and_every_gpu_that_jax_supports(
    smi: Path, driver: str, cards: list[str], lock: str, words: str
) -> None:
    write_smi(smi, driver, *cards)
    done = chosen(smi)
    assert (done.returncode, done.stdout) == (0, f"{lock}\n"), done.stderr
    assert words in done.stderr


@pytest.mark.parametrize(
    ("driver", "cards", "old", "words"),
    [
        ("470.256.02", [H200], False, "driver 470.256.02 is too old: JAX's CUDA 12 needs 525 or newer"),
        ("450.80.02", [V100], True, "driver 450.80.02 is too old"),
        ("535.183.01", [K80], False, "CUDA 12 needs compute capability 5.2, and it has Tesla K80 (compute"),
    ],
)  # fmt: skip
def test_a_machine_whose_driver_or_gpus_are_too_old_gets_one_sentence(
    smi: Path, driver: str, cards: list[str], old: bool, words: str
) -> None:
    write_smi(smi, driver, *cards, old=old)
    done = chosen(smi)
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_machine_without_a_driver_gets_the_choices(smi: Path) -> None:
    done = chosen(smi)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("No NVIDIA driver answers on this machine")
    choices = "CUDA=13 (driver 580 or newer, compute capability 7.5 or more) or CUDA=12 (driver 525"
    assert choices in done.stderr
    for cuda, lock in (("13", CUDA_13), ("12", CUDA_12)):
        assert chosen(smi, cuda).stdout == f"{lock}\n", "it may be installed for other machines"


@pytest.mark.parametrize("value", ["11", "12.4", "/usr/local/cuda", "14"])
def test_another_value_of_cuda_is_refused_with_what_is_possible(smi: Path, value: str) -> None:
    write_smi(smi, "580.65.06", H200)
    done = chosen(smi, value)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"CUDA={value} is not possible. Use CUDA=13 ")


def test_a_release_that_is_chosen_against_the_driver_is_told(smi: Path) -> None:
    write_smi(smi, "535.183.01", V100)
    done = chosen(smi, "13")
    assert done.stdout == f"{CUDA_13}\n"
    assert "driver 535.183.01 is too old for it" in done.stderr
    assert "does not support Tesla V100-SXM2-16GB (compute capability 7.0)" in done.stderr


def test_the_kernel_module_names_the_driver_where_nvidia_smi_is_missing(
    smi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = tmp_path / "version"
    version.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs)\n"
        "GCC version: 12\n"
    )
    monkeypatch.setenv("PATH", str(smi))
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, 'scripts'); import gpu_lock;"
        "print(gpu_lock.read_machine(Path(sys.argv[1])).driver)"
    )
    command = [sys.executable, "-c", program, str(version)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "560.35.03\n"


@pytest.mark.parametrize("needs", NEWEST_FIRST, ids=lambda needs: f"CUDA {needs.release}")
def test_each_release_has_its_lock_file_and_its_plugin(needs: CudaNeeds) -> None:
    assert needs.plugin in entries(needs.lock)
    assert needs.plugin in PLUGINS


def test_the_lock_file_for_older_gpus_has_a_cudnn_that_computes_on_them() -> None:
    # cuDNN 9.11 and newer compute on GPUs with a compute capability of 7.5 or more only.
    version = re.match(r"nvidia-cudnn-cu12==(\d+)\.(\d+)", entries(CUDA_12)["nvidia-cudnn-cu12"])
    assert version is not None
    assert (int(version[1]), int(version[2])) == (9, 10)


@pytest.mark.parametrize("goal", ["setup-gpu", "test-gpu"])
def test_make_passes_the_choice_on_from_its_arguments_and_from_the_environment(goal: str) -> None:
    for arguments, environment in ((["CUDA=12"], {}), ([], {"CUDA": "12"})):
        done = subprocess.run(
            ["make", "--dry-run", goal, *arguments], cwd=ROOT, env={**os.environ, **environment},
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert 'CUDA="12" sh scripts/setup' in done.stdout
