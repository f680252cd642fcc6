import os

import pytest

from jobs.messages.warm_processes import Warm
from workers.node import warm_processes
from workers.node.warm_processes import WarmMemory


class Readings:
    """Counts how often a process's memory is read; every reading is one byte larger."""

    def __init__(self) -> None:
        self.pids: list[int] = []

    def read(self, pid: int) -> int:
        self.pids.append(pid)
        return len(self.pids)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Readings:
    memory_readings = Readings()
    monkeypatch.setattr(warm_processes, "proportional_memory", memory_readings.read)
    return memory_readings


def standby(pid: int = 77, **changes: object) -> Warm:
    fields = {"kind": "standby", "state": "ready", "threads": 2, "pid": pid, "since": 1.0}
    return Warm.model_validate(fields | changes)


def test_heartbeats_read_the_memory_of_a_process_once_until_the_interval_has_passed(
    readings: Readings, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = WarmMemory()
    assert [memory.with_memory([standby()])[0].memory_bytes for _ in range(3)] == [1, 1, 1]
    monkeypatch.setattr(warm_processes, "_MEMORY_SECONDS", -1.0)
    assert memory.with_memory([standby()])[0].memory_bytes == 2


def test_a_new_process_and_one_that_became_ready_are_read_at_once(readings: Readings) -> None:
    memory = WarmMemory()
    memory.with_memory([standby(77, state="preparing")])
    memory.with_memory([standby(77), standby(78)])
    memory.with_memory([standby(77, since=2.0), standby(78)])
    assert readings.pids == [77, 77, 78, 77]


def test_the_memory_of_a_real_process_is_known() -> None:
    assert WarmMemory().with_memory([standby(os.getpid())])[0].memory_bytes > 2**20
