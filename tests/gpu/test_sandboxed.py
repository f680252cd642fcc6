"""Users' code on a real GPU, at each sandbox level that the machine offers."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest

from jobs.messages.sandbox import MIB, Level, LevelState, Limits, SandboxRequest
from tests.environments.conftest import levels, users
from tests.sandbox.conftest import claimed
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.sandbox import gpus
from workers.confinement.sandbox.gpus import SandboxGpu
from workers.confinement.sandbox.launch import Owner, Streams, launch_at
from workers.confinement.sandbox.view import python_folders
from workers.node.gpu_inventory.gpus import Gpu

__all__ = ["levels", "users"]
pytestmark = pytest.mark.gpu

LIMITS = Limits(
    memory_of_all=8192 * MIB, processes_of_all=8, disk_of_all=MIB, output_of_all=MIB, file_bytes=MIB,
    open_files=1024, cpu_seconds=300,
)  # fmt: skip
PROGRAM = """
import os, jax, jax.numpy as jnp
(device,) = jax.devices("gpu")
print(device.device_kind, float((jnp.ones((64, 64)) @ jnp.ones((64, 64))).sum()))
def can_open(number):
    try:
        os.close(os.open(f"/dev/nvidia{number}", os.O_RDWR))
    except OSError:
        return False
    return True
print([number for number in range(32) if can_open(number)])
"""


@pytest.fixture
def owner(users: RunnerUsers) -> Iterator[Owner | None]:
    if os.geteuid() != 0:
        yield None
        return
    with claimed(users) as user:
        yield Owner(user.uid, user.uid)


@pytest.mark.parametrize("level", list(Level))
def test_a_program_in_a_sandbox_computes_on_its_gpu_alone(
    level: Level, gpu: Gpu, levels: tuple[LevelState, ...], owner: Owner | None
) -> None:
    state = next(level_state for level_state in levels if level_state.level is level)
    if not state.offered:
        pytest.skip(state.reason)
    if problem := gpus.problem_at(level, own_user=owner is not None, count=1, network=False):
        pytest.skip(problem)
    access = gpus.find([SandboxGpu(gpu.uuid, gpu.minor)], own_user=owner is not None)
    with tempfile.TemporaryDirectory(prefix="trainyard-gpu-") as folder:
        if owner is not None:
            os.chown(folder, *owner)
        request = SandboxRequest(
            readable=(*access.readable, *map(str, python_folders())),
            writable=(folder,), folder=folder, devices=access.devices, limits=LIMITS,
            environment={
                "CUDA_VISIBLE_DEVICES": access.visible, "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
                "JAX_PLATFORMS": "cuda",
            },
        )  # fmt: skip
        streams = Streams(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        command = [sys.executable, "-c", PROGRAM]
        with launch_at(level, request, command, owner=owner, streams=streams) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            status = process.wait(120)
            printed, errors = process.stdout.read().decode(), process.stderr.read().decode()
    assert status == 0, errors
    kind, devices = printed.strip().splitlines()
    assert kind == f"{gpu.model} 262144.0"
    if level is not Level.PROCESS:
        assert devices == str([gpu.minor])
