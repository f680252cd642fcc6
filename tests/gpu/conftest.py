"""Skips these tests, with the reason, on machines without a GPU that JAX can use."""

import pytest

from workers.node.accelerators import cuda_release, plugin_problem
from workers.node.gpu_inventory.gpus import DriverError, Gpu, Nvml
from workers.system import gpu_support


@pytest.fixture(scope="session")
def gpu() -> Gpu:
    """The machine's first GPU that JAX supports."""
    try:
        nvml = Nvml.open()
        gpus = [] if nvml is None else nvml.gpus()
    except DriverError as error:
        pytest.skip(f"the NVIDIA driver does not answer: {error}")
    if not gpus:
        pytest.skip("this machine has no NVIDIA GPU")
    if (problem := plugin_problem()) is not None:
        pytest.skip(problem)
    support = gpu_support.check(gpus, cuda_release())
    if support.problem is not None:
        pytest.skip(support.problem)
    return support.usable[0]


@pytest.fixture(autouse=True)
def visible(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Show a test's processes one GPU only."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpu.cuda_id)
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
