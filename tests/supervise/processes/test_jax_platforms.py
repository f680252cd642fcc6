"""The answers of the real JAX, in a process of its own, about platforms that this machine lacks."""

import os

import pytest

from workers.node.accelerators import find
from workers.node.gpu_inventory.claims import GpuClaims
from workers.system import jax_platforms
from workers.system.gpu_signs import GpuSigns


@pytest.mark.parametrize("value", ["cuda", "cuda,cpu", "tpu", "cud"])
def test_the_real_jax_says_why_it_cannot_use_a_platform(value: str) -> None:
    environment = {**os.environ, "JAX_PLATFORMS": value}
    hardware = find(None, environment, GpuClaims(), signs=GpuSigns)
    if hardware.gpus or hardware.others:
        pytest.skip("this machine has the device")
    assert hardware.refuses
    assert f"JAX_PLATFORMS={value}" in (hardware.problem or "")
    if value != "cuda,cpu":  # with a second platform, JAX uses that one without a word
        assert "JAX" in (hardware.problem or "").removeprefix("JAX_PLATFORMS")


def test_an_answer_of_jax_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_platforms, "_PROBE", "import os; os._exit(3)")
    assert jax_platforms.probe(os.environ).error == "JAX ended with the exit status 3"
