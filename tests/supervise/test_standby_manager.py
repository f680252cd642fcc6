"""When a node starts and ends standbys. Machine and pool are fakes."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from jobs.contracts.sandbox import Level
from jobs.contracts.task_parts import OwnCode
from jobs.queries.sandboxes import CodeRules
from workers.node import standby_manager
from workers.node.sandbox_demand import SandboxDemand
from workers.node.standby_manager import MIN_FREE_MEMORY, EnvironmentHistory, StandbyManager
from workers.runner.environment import Environment
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt_repository import DatabaseUnavailable
from workers.supervise.limits.sandbox_limits import SandboxLimits
from workers.supervise.pool.runner_pool import RunnerPool
from workers.supervise.pool.runner_sandbox import SandboxNeeds
from workers.supervise.pool.standby import StandbyKey
from workers.supervise.timing import Timing

DEFAULT = Environment(threads=1)
RULES = CodeRules(Level.LANDLOCK, network=False, people=frozenset({7}))
LIMITS = SandboxLimits().of_run(2**30)


def code_of(project: int, **code: Any) -> StandbyKey:
    """The standby for the tasks of a project."""
    own = OwnCode(digest="", minimum=Level.LANDLOCK, network=False).model_copy(update=code)
    return StandbyKey(DEFAULT, None, SandboxNeeds(project, own, "", "", LIMITS))


@dataclass
class FakeStandbys:
    available: bool = True
    keys: list[StandbyKey] = field(default_factory=list)
    tries: int = 0
    warming_up: bool = False
    started_at: float = field(default_factory=time.time)

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
        present = [SimpleNamespace(key=key, started_at=self.started_at) for key in self.keys]
        self.keys = [each.key for each in present if not should_end(each)]


@dataclass
class Machine:
    """A node with a free slot, idle cores, free memory and no recent task."""

    manager: StandbyManager
    pool: Any
    idle: float = 2.0
    memory: int = 2 * MIN_FREE_MEMORY

    async def update(self, *, draining: bool = False) -> list[Environment]:
        return [key.environment for key in await self.keys(draining=draining)]

    async def keys(self, *, draining: bool = False) -> list[StandbyKey]:
        await self.manager._update(draining=draining)
        if self.manager._adding is not None and not self.pool.standbys.warming_up:
            await self.manager._adding
        return list(self.pool.standbys.keys)


@pytest.fixture
def rules() -> AsyncMock:
    return AsyncMock(return_value={1: RULES, 2: RULES})


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: AsyncMock) -> Machine:
    pool = SimpleNamespace(standbys=FakeStandbys(), free_slots=1, on_taken=None)
    manager = StandbyManager(
        cast(RunnerPool, pool),
        EnvironmentHistory(tmp_path / "habits.json", DEFAULT),
        SandboxDemand(rules, 900.0),
        Devices(),
        tmp_path / "cache",
        1,
        2,
        Timing(standby_quiet=0.0, standby_patience=3600.0),
    )
    made = Machine(manager, pool)
    monkeypatch.setattr(manager, "_cores", SimpleNamespace(since_last_call=lambda: made.idle))
    monkeypatch.setattr(standby_manager, "available_memory", lambda: made.memory)
    return made


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


async def test_projects_whose_code_ran_lately_have_sandboxes_ready_one_each_and_the_newest_the_rest(
    machine: Machine,
) -> None:
    machine.pool.free_slots = 2
    first, second = code_of(1), code_of(2)
    machine.pool.on_taken(first)
    assert [await machine.keys(), await machine.keys(), await machine.keys()][-1][1:] == [first, first]
    machine.pool.on_taken(second)
    await machine.keys()
    assert (await machine.keys())[1:] == [first, second]
    machine.pool.free_slots = 1
    assert (await machine.keys())[1:] == [second]
    machine.pool.standbys.started_at = time.time() - 3601.0
    machine.idle = 0.0
    assert (await machine.keys())[1:] == [], "it is replaced at this age"


@pytest.mark.parametrize(
    "now",
    [
        {1: RULES._replace(minimum=Level.BUBBLEWRAP)},
        {1: RULES._replace(network=True)},
        {1: RULES._replace(people=frozenset({7, 8}))},
        {},
    ],
)
async def test_sandboxes_end_when_the_rules_of_their_project_change_or_its_packages(
    machine: Machine, rules: AsyncMock, monkeypatch: pytest.MonkeyPatch, now: dict[int, CodeRules]
) -> None:
    monkeypatch.setattr("workers.node.sandbox_demand.CHECK_SECONDS", 0.0)
    machine.pool.on_taken(code_of(1))
    await machine.keys()
    assert (await machine.keys())[1:] == [code_of(1)]
    machine.pool.on_taken(code_of(1, python="/other/venv/bin/python"))
    assert code_of(1) not in await machine.keys()
    rules.return_value = now
    assert (await machine.keys())[1:] == []


async def test_an_outage_of_the_database_ends_no_sandbox_and_15_minutes_without_code_do(
    machine: Machine, rules: AsyncMock
) -> None:
    machine.pool.on_taken(code_of(1))
    await machine.keys()
    rules.side_effect = DatabaseUnavailable("no answer")
    assert (await machine.keys())[1:] == [code_of(1)]
    machine.manager.demand.idle_seconds = -1.0
    assert (await machine.keys())[1:] == []


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
