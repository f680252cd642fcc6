"""Attempts on GPUs that others use too, with fake runners and a fake reader of the GPUs."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from jobs import lease_clock
from jobs.messages.events import Metric, Warned
from jobs.spec.checks.gpu_memory import UNKNOWN_NEED, DeviceState, MemoryNeed
from jobs.states import Outcome
from tests.supervise.conftest import Bench, until
from workers.supervise.attempt import attempt_gpus
from workers.supervise.attempt.attempt import AttemptSupervisor
from workers.supervise.attempt.devices import Devices, NoFreeGpu
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import Assignment, ReservedGpus

GB = 10**9
IDS = {"gpu:0": "0", "gpu:1": "1"}


def other(pid: int, size: float, since: float = 1.0) -> dict[str, Any]:
    process = {"pid": pid, "user": "eve", "program": "python", "same_user": False, "since": since}
    return {**process, "memory_bytes": int(size * GB)}


@dataclass
class FakeReader:
    """The GPUs of the box; `published` counts writes of the worker's row."""

    held: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    preallocated: float | None = None
    published: int = 0

    async def read(self, max_age: float = 1.0) -> Sequence[DeviceState]:
        del max_age
        return [
            {
                "name": name,
                "memory_bytes": 24 * GB,
                "memory_used": 6 * 2**30,
                "load": 0.5,
                "temperature": 61.0,
                "others": self.held.get(name, []),
                "others_bytes": sum(row["memory_bytes"] for row in self.held.get(name, [])),
            }
            for name in IDS
        ]

    async def publish(self) -> None:
        self.published += 1


@pytest.fixture
def reader(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> FakeReader:
    monkeypatch.setattr(attempt_gpus, "needs_jax", lambda _task: True)
    fake = FakeReader()
    bench.node = replace(bench.node, devices=Devices(IDS), gpus=fake)
    return fake


def visible(bench: Bench, attempt: int = 1) -> str:
    seen = json.loads(bench.repository.lines(attempt)[0].line)
    return str(seen["CUDA_VISIBLE_DEVICES"])


async def test_an_attempt_takes_a_gpu_that_no_stranger_fills(bench: Bench, reader: FakeReader) -> None:
    reader.held["gpu:0"] = [other(7, 21)]
    await bench.run(["environment"])
    assert visible(bench) == "1"


async def test_an_attempt_whose_gpu_was_filled_since_its_placement_is_given_back_without_a_restart(
    bench: Bench, reader: FakeReader
) -> None:
    reader.held = {name: [other(7, 21)] for name in IDS}
    ending = await bench.run(["environment"])
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.LOST, "gpu_held")
    assert "GPU 0: 21 of 24 GB held by another user's python" in ending.message
    assert bench.repository.events.get(1, []) == [], "no runner has begun"
    assert reader.published == 1, "the scheduler does not place it here again by an older reading"
    assert bench.node.devices.attempts == {}
    reader.held.clear()
    assert (await bench.run(["environment"], attempt=2)) is not None
    assert visible(bench, 2) == "0"


async def test_an_attempt_never_gets_the_gpu_of_another_because_a_stranger_fills_the_free_one(
    bench: Bench, reader: FakeReader
) -> None:
    first = bench.start(["environment"], ["hang"])
    await until(lambda: bench.repository.lines(1))
    assert dict(bench.node.devices.attempts) == {"0": (1,)}
    reader.held["gpu:1"] = [other(7, 21)]
    ending = await bench.run(["environment"], attempt=2)
    assert ending is not None
    assert ending.code == "gpu_held"
    first.supervisor.end(AttemptEnd(Outcome.KILLED))
    await first.ended()
    assert dict(bench.node.devices.attempts) == {}


async def test_a_known_need_decides_before_the_rule_for_unknown_ones(
    bench: Bench, reader: FakeReader
) -> None:
    reader.held = {name: [other(7, 15)] for name in IDS}
    for attempt, need in ((1, UNKNOWN_NEED), (2, MemoryNeed(estimate=4 * GB))):
        bench.repository.scripts[attempt] = [["environment"]]
        assignment = Assignment(attempt, 1, 1, need=need)
        await AttemptSupervisor(assignment, bench.node, claimed_at=lease_clock.now()).run()
    outcomes = [bench.repository.endings[attempt].outcome for attempt in (1, 2)]
    assert outcomes == [Outcome.LOST, Outcome.COMPLETED]


async def test_a_process_that_arrives_on_the_gpu_of_a_run_is_a_warning_once_and_no_error(
    bench: Bench, reader: FakeReader
) -> None:
    reader.held["gpu:0"] = [other(7, 1)]  # it was there before the run

    def warnings() -> list[str]:
        events = bench.repository.events.get(1, [])
        return [event.message for event in events if isinstance(event, Warned)]

    run = bench.start(["environment"], ["hang"])
    await until(lambda: bench.repository.lines(1))
    reader.held["gpu:1"] = [other(8, 20)]  # on a GPU that the run does not hold
    reader.held["gpu:0"] = [other(7, 1), other(9, 18.5, since=2.0)]
    await until(warnings)
    await asyncio.sleep(0.3)  # several samples
    assert warnings() == [
        "Another user's python (user eve, process 9) has begun to use gpu:0, which this run holds: 18.5 GB "
        "of 24.0 GB so far. The run continues; it may become slower, and it fails if too little memory is "
        "left."
    ]
    assert not run.supervisor.ended
    run.supervisor.end(AttemptEnd(Outcome.KILLED))
    await run.ended()


async def test_the_figures_of_a_runs_gpus_become_points_of_its_charts(
    bench: Bench, reader: FakeReader
) -> None:
    run = bench.start(["environment"], ["hang"])

    def points() -> dict[str, float | None]:
        events = [event for event in bench.repository.events.get(1, []) if isinstance(event, Metric)]
        return {name: value for event in events for name, _, value, _ in event.points if "gpu" in name}

    await until(points)
    assert points() == {
        "system/gpu0_memory_gib": 6.0,
        "system/gpu0_load_percent": 50.0,
        "system/gpu0_temperature_celsius": 61.0,
    }
    run.supervisor.end(AttemptEnd(Outcome.KILLED))
    await run.ended()


async def test_a_stranger_gets_no_reserved_gpu_and_its_holder_gets_it_first(
    bench: Bench, reader: FakeReader
) -> None:
    del reader
    bench.repository.reserved = {
        1: ReservedGpus({"gpu:0": "Reserved for others."}),
        2: ReservedGpus(own={"gpu:1"}),
    }
    await bench.run(["environment"], attempt=1)
    await bench.run(["environment"], attempt=2)
    assert [visible(bench, attempt) for attempt in (1, 2)] == ["1", "1"]


async def test_an_attempt_whose_gpu_was_reserved_since_its_placement_is_given_back_without_a_restart(
    bench: Bench, reader: FakeReader
) -> None:
    reader.held["gpu:1"] = [other(7, 21)]
    bench.repository.reserved[1] = ReservedGpus({"gpu:0": "Reserved for others (reservation 3): gpu:0."})
    ending = await bench.run(["environment"])
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.LOST, "gpu_held")
    assert ending.message.endswith("(user eve, process 7). Reserved for others (reservation 3): gpu:0.")
    assert bench.repository.events.get(1, []) == [], "no runner has begun"
    assert bench.node.devices.attempts == {}


def test_reserved_gpus_are_taken_first_unless_others_use_them() -> None:
    devices = Devices(IDS)
    assert devices.take(1, prefer=["gpu:1"]) == ("1",)
    assert devices.take(1, prefer=["gpu:1"]) == ("0",)


def test_named_gpus_are_shared_with_other_attempts_but_not_with_strangers() -> None:
    devices = Devices(IDS)
    assert devices.take(1, ("gpu:1",), attempt=1) == ("1",)
    assert devices.take(1, ("gpu:1",), attempt=2) == ("1",)
    with pytest.raises(NoFreeGpu):
        devices.take(2, ("gpu:0", "gpu:1"), avoid=("gpu:1",), attempt=3)
    devices.give_back(("1",), 1)
    assert devices.attempts == {"1": (2,)}


def test_several_places_of_a_gpu_are_filled_beside_one_that_a_stranger_has() -> None:
    devices = Devices(IDS, places=2)
    assert [devices.take(1, avoid=("gpu:0",)) for _ in range(2)] == [("1",), ("1",)]
    with pytest.raises(NoFreeGpu):
        devices.take(1, avoid=("gpu:0",))
    assert devices.take(1) == ("0",)
