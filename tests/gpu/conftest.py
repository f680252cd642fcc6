"""Skips these tests, with the reason, on machines without a GPU that JAX can use."""

import pytest

from workers.node.accelerators import plugin_problem
from workers.node.gpus import DriverError, Gpu, Nvml


@pytest.fixture(scope="session")
def gpu() -> Gpu:
    """The machine's first GPU."""
    try:
        nvml = Nvml.open()
        gpus = [] if nvml is None else nvml.gpus()
    except DriverError as error:
        pytest.skip(f"the NVIDIA driver does not answer: {error}")
    if not gpus:
        pytest.skip("this machine has no NVIDIA GPU")
    if (problem := plugin_problem()) is not None:
        pytest.skip(problem)
    return gpus[0]


@pytest.fixture(autouse=True)
def visible(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Show a test's processes one GPU only."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpu.cuda_id)
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
