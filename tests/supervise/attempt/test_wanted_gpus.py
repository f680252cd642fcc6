"""A worker gives each run exactly the GPUs that its spec asks for."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.sandbox import Level
from jobs.messages.task import OwnCode, Task
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.gpu import GpuDevice
from jobs.states import Outcome
from tests.supervise.conftest import Bench
from workers.supervise.attempt import attempt_gpus
from workers.supervise.attempt.attempt_gpus import AttemptGpus
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.wanted_gpus import NoWantedGpu, WantedGpus, wanted_gpus

GPUS = (
    GpuDevice("gpu:0", "Tesla T4", 16_000_000_000),
    GpuDevice("gpu:1", "NVIDIA H200", 150_000_000_000),
    GpuDevice("gpu:2", "NVIDIA H200", 150_000_000_000),
)


def wanted_by(gpu: dict[str, Any] | None, slots: int, **sections: Any) -> WantedGpus:
    """Return the GPUs for a task with this part of its spec."""
    resources = {"slots": 3} if gpu is None else {"slots": 3, "gpu": gpu}
    body = {"data": {"dataset": "digits"}, "model": {"template": "mlp"}, "resources": resources}
    spec = ExperimentSpec.model_validate(body | sections)
    return wanted_gpus(cast("Task", SimpleNamespace(spec=spec)), slots, GPUS)


MESH = {"devices": "gpu", "shape": [2], "axis_names": ["data"]}


@pytest.mark.parametrize(
    ("gpu", "slots", "given"),
    [
        (None, 1, ["0"]),
        (None, 2, ["0", "1"]),
        ({}, 3, ["0"]),
        ({"count": 3}, 3, ["0", "1", "2"]),
        ({"name": "H200"}, 1, ["1"]),
        ({"name": "H200", "count": 2}, 2, ["1", "2"]),
        ({"name": "gpu:2"}, 1, ["2"]),
        ({"memory_gb": 100, "count": 2}, 2, ["1", "2"]),
        ({"memory_gb": 15}, 1, ["0"]),
        ({"name": "H200", "count": 2}, 1, ["1"]),
    ],
)
def test_a_task_gets_gpus_of_its_model_memory_and_number(
    gpu: dict[str, Any] | None, slots: int, given: list[str]
) -> None:
    devices, wanted = Devices({"gpu:0": "0", "gpu:1": "1", "gpu:2": "2"}), wanted_by(gpu, slots)
    assert devices.take(wanted.number, avoid=wanted.unwanted) == tuple(given)


def test_a_mesh_decides_the_number_if_the_spec_has_none() -> None:
    wanted = wanted_by({"name": "H200"}, 2, mesh=MESH)
    assert wanted == WantedGpus(2, ("gpu:1", "gpu:2"), ("gpu:0",), is_asked=True)


def test_jobs_on_the_same_model_get_different_gpus() -> None:
    devices, wanted = Devices({"gpu:0": "0", "gpu:1": "1", "gpu:2": "2"}), wanted_by({"name": "H200"}, 1)
    assert [devices.take(wanted.number, avoid=wanted.unwanted) for _ in range(2)] == [("1",), ("2",)]


def test_fewer_gpus_than_a_spec_asks_for_are_an_error_with_the_reason() -> None:
    WantedGpus(2).check(("0",))
    WantedGpus(1, is_asked=True).check(("0",))
    with pytest.raises(
        NoWantedGpu, match=r"asks for 2 GPUs by resources\.gpu, but this worker has 1 of that kind"
    ):
        WantedGpus(2, is_asked=True).check(("0",))
    with pytest.raises(NoWantedGpu, match=r"asks for a GPU by resources\.gpu, but its sandbox gets none"):
        WantedGpus(1, is_asked=True).check((), "its sandbox gets none")


async def test_a_run_sees_the_gpus_that_it_asked_for_or_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_gpus, "needs_jax", lambda _task: True)
    asked: dict[str, Any] = {"name": "H200"}
    monkeypatch.setattr(attempt_gpus, "wanted_gpus", lambda _task, slots, _gpus: wanted_by(asked, slots))
    devices = Devices({gpu.name: gpu.name[-1] for gpu in GPUS})
    bench.node = replace(bench.node, devices=devices, gpu_models=GPUS)
    await bench.run(["environment"], attempt=1)
    seen = json.loads(bench.repository.lines(1)[0].line)
    assert seen["CUDA_VISIBLE_DEVICES"] == "1"
    asked["name"] = "B200"
    ending = await bench.run(["environment"], attempt=2)
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.FAILED, "no_wanted_gpu")
    assert "asks for a GPU by resources.gpu" in ending.message
    assert devices.next(1) == ("0",), "nothing stays allocated"


async def test_code_whose_sandbox_gets_no_gpu_fails_with_the_reason_if_it_asks_for_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(gpus: AttemptGpus, _code: OwnCode) -> None:
        gpus.warning = f"{attempt_gpus.NO_GPU_IN_SANDBOX}gpu:1 is a part of a divided GPU."

    monkeypatch.setattr(attempt_gpus, "needs_jax", lambda _task: True)
    monkeypatch.setattr(attempt_gpus, "wanted_gpus", lambda _task, slots, _gpus: wanted_by({}, slots))
    monkeypatch.setattr(AttemptGpus, "_open_to_sandbox", refuse)
    bench.node = replace(bench.node, devices=Devices({"gpu:0": "0"}), gpu_models=GPUS)
    code = OwnCode(digest="a" * 64, minimum=Level.PROCESS, network=False)
    bench.repository.tasks[1] = ProfileTask(folder="", source="bundled", bundled="iris", code=code)
    ending = await bench.run(attempt=1)
    assert ending is not None
    assert (ending.outcome, ending.code, ending.message) == (
        Outcome.FAILED,
        "no_wanted_gpu",
        "The run asks for a GPU by resources.gpu, but its code runs in a sandbox, which gets no GPU, because "
        "gpu:1 is a part of a divided GPU",
    )
