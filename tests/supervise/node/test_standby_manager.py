"""When a node starts and ends standbys. Machine and pool are fakes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from workers.node import standby_manager
from workers.node.standby_manager import MIN_FREE_MEMORY, EnvironmentHistory, StandbyManager
from workers.runner.environment import Environment
from workers.supervise.attempt.devices import Devices
from workers.supervise.pool.runner_pool import RunnerPool
from workers.supervise.pool.standby import StandbyKey
from workers.supervise.timing import Timing

DEFAULT = Environment(threads=1)


@dataclass
class FakeStandbys:
    available: bool = True
    keys: list[StandbyKey] = field(default_factory=list)
    tries: int = 0
    warming_up: bool = False

    def count(self, key: StandbyKey) -> int:
        return self.keys.count(key)

    async def add(self, key: StandbyKey, *, cache: Path) -> bool:
        self.tries += 1
        if self.available:
            self.keys.append(key)
        while self.warming_up and key in self.keys:
            await asyncio.sleep(0)
        return key in self.keys

    async def clear(self, should_end: Callable[[Any], bool] = lambda _: True) -> None:
        present = [SimpleNamespace(key=key) for key in self.keys]
        self.keys = [standby.key for standby in present if not should_end(standby)]


@dataclass
class Machine:
    """A node with a free slot, idle cores, free memory and no recent task."""

    manager: StandbyManager
    pool: Any
    idle: float = 2.0
    memory: int = 2 * MIN_FREE_MEMORY

    async def update(self, *, draining: bool = False) -> list[Environment]:
        await self.manager._update(draining=draining)
        if self.manager._adding is not None and not self.pool.standbys.warming_up:
            await self.manager._adding
        return [key.environment for key in self.pool.standbys.keys]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    pool = SimpleNamespace(standbys=FakeStandbys(), free_slots=1, on_taken=None)
    manager = StandbyManager(
        cast(RunnerPool, pool),
        EnvironmentHistory(tmp_path / "habits.json", DEFAULT),
        Devices(),
        tmp_path / "cache",
        1,
        Timing(standby_quiet=0.0, standby_patience=3600.0),
    )
    test_machine = Machine(manager, pool)
    monkeypatch.setattr(manager, "_cores", SimpleNamespace(since_last_call=lambda: test_machine.idle))
    monkeypatch.setattr(standby_manager, "available_memory", lambda: test_machine.memory)
    return test_machine


async def test_an_idle_node_keeps_a_standby_for_the_default_environment(machine: Machine) -> None:
    assert await machine.update() == [DEFAULT]
    assert await machine.update() == [DEFAULT]


@pytest.mark.parametrize("change", [{"free_slots": 0}, {"memory": MIN_FREE_MEMORY - 1}, {"draining": True}])
async def test_a_standby_ends_when_slots_or_memory_are_short_or_the_node_drains(
    machine: Machine, change: dict[str, Any]
) -> None:
    await machine.update()
    machine.pool.free_slots = change.get("free_slots", 1)
    machine.memory = change.get("memory", machine.memory)
    assert await machine.update(draining="draining" in change) == []


async def test_a_standby_that_still_warms_up_ends_when_memory_is_short(machine: Machine) -> None:
    machine.pool.standbys.warming_up = True
    async with asyncio.timeout(60):
        while await machine.update() != [DEFAULT]:
            await asyncio.sleep(0)
        assert machine.pool.standbys.tries == 1, "one at a time"
        machine.memory = MIN_FREE_MEMORY - 1
        assert await machine.update() == []
        assert machine.manager._adding is not None
        await machine.manager._adding


async def test_on_a_busy_machine_a_standby_waits_for_longer(machine: Machine) -> None:
    machine.idle = 0.0
    assert await machine.update() == []
    machine.manager.timing = Timing(standby_quiet=0.0, standby_patience=0.0)
    assert await machine.update() == [DEFAULT]


async def test_during_a_burst_of_tasks_no_standby_is_started(machine: Machine) -> None:
    machine.manager.timing = Timing(standby_quiet=3600.0, standby_patience=3600.0)
    machine.pool.on_taken(StandbyKey(DEFAULT))
    assert await machine.update() == []


async def test_a_failed_standby_is_not_retried_at_once(machine: Machine) -> None:
    machine.pool.standbys.available = False
    await machine.update()
    await machine.update()
    assert machine.pool.standbys.tries == 1


async def test_the_history_survives_a_restart_and_chooses_the_environment(
    machine: Machine, tmp_path: Path
) -> None:
    await machine.update()
    sharded = Environment(1, "cpu", 1)
    for _ in range(3):
        machine.pool.on_taken(StandbyKey(sharded))
    assert await machine.update() == [sharded]
    assert EnvironmentHistory(tmp_path / "habits.json", DEFAULT).most_used(2) == [sharded, DEFAULT]


@pytest.mark.parametrize("text", ["", "{}", "[[1]", '[["two"]]', "[[1, null, 1, 9]]", "[[100000]]"])
def test_an_invalid_history_file_is_ignored(tmp_path: Path, text: str) -> None:
    file = tmp_path / "habits.json"
    file.write_text(text)
    assert EnvironmentHistory(file, DEFAULT).most_used(5) == [DEFAULT]


def test_no_standby_is_kept_for_tasks_that_take_whole_gpus(tmp_path: Path) -> None:
    file = tmp_path / "habits.json"
    history = EnvironmentHistory(file, DEFAULT)
    half = Environment(1, "cuda", memory_fraction=0.5)
    history.record(half)
    history.record(Environment(1, "cuda", preallocate=True))
    assert history.most_used(5) == [half, DEFAULT]
    assert EnvironmentHistory(file, DEFAULT).most_used(5) == [half, DEFAULT]


def test_a_history_that_cannot_be_saved_still_counts(tmp_path: Path) -> None:
    sharded = Environment(1, "cpu", 1)
    history = EnvironmentHistory(tmp_path / "gone" / "habits.json", DEFAULT)
    history.record(sharded)
    assert history.most_used(1) == [sharded]
