"""GPUs for attempts and runners: how they are shared, named and reported."""

from pathlib import Path

import pytest

from jobs.messages.sandbox import Level, LevelState
from jobs.messages.task import OwnCode
from workers.confinement.sandbox.gpus import GpuAccess, SandboxGpu
from workers.confinement.start.files import ProcessFiles
from workers.supervise.attempt.devices import Devices
from workers.supervise.limits.sandbox_limits import GIB, SandboxLimits
from workers.supervise.pool.runner_sandbox import SandboxNeeds
from workers.supervise.pool.sandbox_gpus import SandboxGpus
from workers.supervise.pool.sandboxes import Sandboxes
from workers.system.environment import runner_environment


def test_attempts_get_the_least_used_gpus_and_share_them_when_slots_are_more() -> None:
    devices = Devices({"gpu:2": "2", "gpu:3": "3"})
    assert [devices.take(1) for _ in range(3)] == [("2",), ("3",), ("2",)]
    assert devices.next(1) == ("3",)
    devices.give_back(("2",))
    devices.give_back(("2",))
    assert devices.take(1) == ("2",)
    assert Devices({"gpu:2": "2", "gpu:3": "3"}).take(5) == ("2", "3")
    assert Devices().take(1) == ()


def test_named_devices_are_allocated_in_the_order_of_the_mesh() -> None:
    devices = Devices({"gpu:0": "0", "gpu:1": "1", "gpu:0.1": "MIG-b"})
    assert devices.take(2, ("gpu:1", "gpu:0")) == ("1", "0")
    assert devices.take(1, ("gpu:0.1",)) == ("MIG-b",)
    assert devices.take(1, ("gpu:7",)) == ()


def test_a_runner_sees_its_gpus_only_and_numbers_them_as_the_worker_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    environment = runner_environment(tmp_path, devices="2,3")
    assert (environment["CUDA_VISIBLE_DEVICES"], environment["CUDA_DEVICE_ORDER"]) == ("2,3", "PCI_BUS_ID")
    assert runner_environment(tmp_path)["CUDA_VISIBLE_DEVICES"] == ""


async def test_a_runner_with_code_gets_its_gpus_by_their_uuids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    access = GpuAccess("GPU-b", ("/dev/nvidiactl", "/dev/nvidia1"), ("/sys/devices",))
    code = OwnCode(digest="a", minimum=Level.LANDLOCK, network=False)
    limits = SandboxLimits().run_limits(GIB)
    sandboxes, files = Sandboxes(tmp_path), ProcessFiles(tmp_path / "runner")
    for gpus, visible, devices in ((access, "GPU-b", access.devices), (None, "", ())):
        needs = SandboxNeeds(1, code, "", "", limits, gpus)
        request = sandboxes._request(needs, files, tmp_path / "work", None)
        assert (request.environment["CUDA_VISIBLE_DEVICES"], request.devices) == (visible, devices)
        assert ("/sys/devices" in request.readable) is bool(gpus)
        assert request.environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.3"
    await sandboxes.close()


def test_a_worker_reports_why_code_gets_no_gpu() -> None:
    states = [LevelState(level=Level.LANDLOCK, offered=True), LevelState(level=Level.PROCESS, offered=True)]
    assert SandboxGpus({}).problems(states) == ()
    one, several = SandboxGpus({"0": SandboxGpu("MIG-a", None)}, own_user=True).problems(states)
    assert "divided" in one or "missing" in one
    assert "sockets" in several
    refused = SandboxGpus({"0": SandboxGpu("GPU-a", 0)}, own_user=False).problems(states)
    assert all("names of threads" in problem for problem in refused)
