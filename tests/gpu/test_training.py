"""Training on a real GPU: the device that is used, its memory and its name."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runner.forks import ROOT
from tests.runner.harness import runner
from tests.runner.tasks import profiled, trial_task
from workers.node.accelerators import find
from workers.node.gpu_inventory.claims import GpuClaims
from workers.node.gpu_inventory.gpus import Gpu

pytestmark = pytest.mark.gpu
ONE = {"shape": [1], "axis_names": ["data"]}


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return profiled(tmp_path_factory.mktemp("iris"), bundled="iris")


@pytest.mark.parametrize(
    "spec",
    [{}, {"mesh": {**ONE, "devices": "gpu"}}, {"mesh": {**ONE, "devices": ["gpu:0"]}}],
    ids=["no mesh", "a mesh of GPUs", "a named GPU"],
)
def test_a_training_on_a_gpu_says_gpu(tmp_path: Path, iris: Any, gpu: Gpu, spec: dict[str, Any]) -> None:
    with runner(tmp_path / "runner") as process:
        events = process.run(trial_task(tmp_path / "trial", iris, **spec))
    assert events[-1].type == "result", events[-1]
    (device,) = next(event.record["devices"] for event in events if event.type == "started")
    assert (device["platform"], device["cuda_visible_device"]) == ("gpu", gpu.cuda_id)
    assert device["kind"] == gpu.model


@pytest.mark.parametrize(
    ("hidden", "mesh"), [({"CUDA_VISIBLE_DEVICES": ""}, {}), ({}, {"mesh": {**ONE, "devices": "cpu"}})]
)
def test_a_run_without_a_gpu_trains_on_the_cpu_beside_it(
    tmp_path: Path, iris: Any, hidden: dict[str, str], mesh: dict[str, Any]
) -> None:
    with runner(tmp_path / "runner", hidden) as process:
        events = process.run(trial_task(tmp_path / "trial", iris, **mesh))
    assert events[-1].type == "result", events[-1]
    assert next(e.record["devices"][0]["platform"] for e in events if e.type == "started") == "cpu"


def test_the_memory_fraction_is_respected() -> None:
    program = "import jax, json; print(json.dumps(jax.devices()[0].memory_stats()))"
    limits = []
    for fraction in ("0.1", "0.2"):
        environment = {
            **os.environ,
            "XLA_CLIENT_MEM_FRACTION": fraction,
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        limits.append(json.loads(done.stdout)["bytes_limit"])
    assert limits[1] == pytest.approx(2 * limits[0], rel=0.02)


def test_a_worker_finds_the_gpu_and_a_second_worker_does_not_use_it(gpu: Gpu) -> None:
    first, second = GpuClaims(), GpuClaims()
    try:
        resources = find(None, os.environ, first)
        (device,) = resources.devices()
        assert (device["name"], device["kind"], device["uuid"]) == (gpu.name, gpu.model, gpu.uuid)
        assert 0 < device["memory_used"] <= device["memory_bytes"]
        assert f"use {gpu.name} ({gpu.model})" in (find(None, os.environ, second).problem or "")
    finally:
        first.close()
        second.close()
