"""Models larger than a device: no device and no host memory has one whole while it is trained and saved."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from workers.engine.killpoint import VARIABLE
from workers.engine.training import checkpoint

MIB = 1 << 20


def run_child(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.engine.processes.large_model_child", command, str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def answer_of(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def largest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("largest")
    return folder, answer_of(run_child("largest", folder))


def test_no_device_has_more_than_its_share_in_any_stage(largest: tuple[Path, Any]) -> None:
    _, found = largest
    # The weights, two slots of the optimizer, and the saved model as loaded; each device has an eighth.
    limit = 5 * found["weights"] / 8 + MIB
    stages = {stage: round(most / MIB, 2) for stage, most in found["most"].items()}
    assert set(stages) >= {
        "assign",
        "batch",
        "metric",
        "checkpoint",
        "checkpoint.arrays",
        "phase",
        "artifact",
    }
    assert {stage: most for stage, most in stages.items() if most > limit / MIB} == {}


def test_the_model_is_evaluated_on_its_mesh_and_the_process_leaves_it(largest: tuple[Path, Any]) -> None:
    _, found = largest
    assert found["shard"] == [512, 256]
    assert found["metrics"]["test"]["accuracy"] > 0.5
    assert not found["has_distribution"]


def test_plain_keras_loads_the_file_on_one_device(largest: tuple[Path, Any]) -> None:
    import keras

    folder, _ = largest
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    # The best epoch's weights are in the newest checkpoint.
    best = checkpoint.read(checkpoint.list_committed(folder / "c")[0]).arrays["best"]
    for variable, expected in zip(model.variables, best, strict=True):
        np.testing.assert_array_equal(variable.numpy(), expected)


def test_a_version_is_validated_and_judged_on_its_mesh(largest: tuple[Path, Any]) -> None:
    folder, trained = largest
    found = answer_of(run_child("later", folder))
    states = {gate["name"]: gate["state"] for gate in found["gates"]}
    assert set(states.values()) == {"passed"}, states
    assert found["metrics"]["challenger"]["accuracy"] == trained["metrics"]["test"]["accuracy"]
    # The version as it was validated, and as challenger and champion: an eighth each.
    limit = 3 * trained["weights"] / 8 + MIB
    assert {stage: most for stage, most in found["most"].items() if most > limit} == {}


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return answer_of(run_child("resume", tmp_path_factory.mktemp("resume")))


@pytest.mark.parametrize("pair", ["mixed-mixed", "mixed-columns", "mixed-one", "one-mixed"])
def test_a_checkpoint_is_resumed_exactly_on_any_mesh(resumed: Any, pair: str) -> None:
    found = resumed["pairs"][pair]
    assert found["is_exact"]
    for ours, whole in zip(found["history"], resumed["whole"]["mixed"], strict=True):
        assert ours == pytest.approx(whole, rel=1e-5, abs=2e-6)


def test_the_same_mesh_continues_bit_for_bit_and_nothing_is_left(resumed: Any) -> None:
    found = resumed["pairs"]["mixed-mixed"]
    assert found["history"] == resumed["whole"]["mixed"]
    assert found["left"] == []


@pytest.mark.parametrize("point", ["checkpoint.begun:2", "checkpoint.arrays:6", "checkpoint.manifest:2"])
def test_a_training_that_is_killed_in_a_checkpoint_resumes_from_the_earlier_one(
    tmp_path: Path, point: str, unbroken: Any
) -> None:
    killed = run_child("steps", tmp_path, **{VARIABLE: point})
    assert killed.returncode == -9, killed.stderr[-3000:]
    [intact] = checkpoint.list_committed(tmp_path / "c")
    assert checkpoint.is_intact(intact)
    again = answer_of(run_child("steps", tmp_path))
    assert again["resumed_after"] == 1
    assert again["history"] == unbroken["history"]
    assert again["left"] == []


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return answer_of(run_child("steps", tmp_path_factory.mktemp("unbroken")))


def test_the_host_never_has_a_second_copy(tmp_path: Path) -> None:
    found = answer_of(run_child("host", tmp_path))
    assert found["size"] > 158 * MIB
    # Two blocks of 16 MiB, and what HDF5 and the allocator keep.
    assert found["checkpoint"] < 48 * MIB
    assert found["file"] < 48 * MIB
    assert found["kept"] < 32 * MIB
    # The second model's parts, which are the devices' memory here.
    assert found["loaded"] < found["size"] + 48 * MIB
    assert found["equal"]


@pytest.mark.parametrize("policy", ["float32", "bfloat16", "mixed_float16"])
def test_the_file_is_that_of_keras(saved: Path, policy: str) -> None:
    ours, theirs = (_contents(saved / f"{policy}-{name}.keras") for name in ("ours", "keras"))
    assert ours == theirs


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    answer_of(run_child("save", folder))
    return folder


def _contents(path: Path) -> dict[str, Any]:
    """Return the config and each HDF5 object's attributes, type and bytes in a `.keras` file."""
    found: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive:
        found["members"] = sorted(archive.namelist())
        found["config"] = json.loads(archive.read("config.json"))

        def add(name: str, node: Any) -> None:
            entry = {"attributes": dict(node.attrs)}
            if isinstance(node, h5py.Dataset):
                entry |= {"dtype": node.dtype, "shape": node.shape, "bytes": node[()].tobytes()}
            found[name] = entry

        with archive.open("model.weights.h5") as file, h5py.File(file, "r") as weights:
            weights.visititems(add)
    return found
