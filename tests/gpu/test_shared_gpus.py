"""The readings of a real GPU."""

import os
import subprocess
import sys

import pytest

from tests.runner.forks import ROOT
from workers.node.accelerators import find
from workers.node.gpu_inventory.claims import GpuClaims
from workers.node.inventory import Inventory

pytestmark = pytest.mark.gpu
HOLD = "import jax.numpy as jnp; x = jnp.ones((2**28,)).block_until_ready(); print(1, flush=True); input()"


@pytest.mark.usefixtures("gpu")
def test_a_real_gpu_is_read_and_the_memory_of_own_processes_is_not_that_of_others() -> None:
    claims = GpuClaims()
    monitor = Inventory(find(None, os.environ, claims)).gpus
    assert monitor is not None
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        (state,) = monitor.states()
        process.kill()
    claims.close()
    assert {"memory_bytes", "memory_used", "load", "temperature"} <= state.keys()
    # The process is a child of this one, which is the worker here: not one of others.
    assert state.get("others_bytes", 0) < 2**30
    assert state["memory_used"] > 2**30
