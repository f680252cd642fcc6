"""When a node makes standbys, and when it ends them; machine and pool are pretended."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from workers.node import warmth as policy
from workers.node.warmth import LEAST_MEMORY, Habits, Warmth
from workers.runner.environment import Environment
from workers.supervise.devices import Devices
from workers.supervise.pool import Key, RunnerPool
from workers.supervise.standby import Role
from workers.supervise.timing import Timing

USUAL = Environment(threads=1)


@dataclass
class PretendedStandbys:
    can: bool = True
    roles: list[Role] = field(default_factory=list)
    tries: int = 0
    rehearsing: bool = False

    def has(self, role: Role) -> bool:
        return role in self.roles

    async def add(self, role: Role, *, cache: Path) -> bool:
        self.tries += 1
        if self.can:
            self.roles.append(role)
        while self.rehearsing and role in self.roles:
            await asyncio.sleep(0)
        return role in self.roles

    async def clear(self, condemned: Callable[[Any], bool] = lambda _: True) -> None:
        self.roles = [role for role in self.roles if not condemned(SimpleNamespace(role=role))]


@dataclass
class Machine:
    """A node with one slot free, idle cores, memory and nothing asked for lately."""

    warmth: Warmth
    pool: Any
    idle: float = 2.0
    memory: int = 2 * LEAST_MEMORY

    async def look(self, *, leaving: bool = False) -> list[Environment]:
        await self.warmth._look(leaving=leaving)
        if self.warmth._adding is not None and not self.pool.standbys.rehearsing:
            await self.warmth._adding
        return [role.environment for role in self.pool.standbys.roles]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    pool = SimpleNamespace(standbys=PretendedStandbys(), free_slots=1, on_taken=None)
    warmth = Warmth(
        cast(RunnerPool, pool),
        Habits(tmp_path / "habits.json", USUAL),
        Devices(),
        tmp_path / "cache",
        1,
        Timing(standby_quiet=0.0, standby_patience=3600.0),
    )
    made = Machine(warmth, pool)
    monkeypatch.setattr(warmth, "_cores", SimpleNamespace(since_last_look=lambda: made.idle))
    monkeypatch.setattr(policy, "memory_left", lambda: made.memory)
    return made


async def test_an_idle_node_keeps_a_standby_of_what_one_slot_gives(machine: Machine) -> None:
    assert await machine.look() == [USUAL]
    assert await machine.look() == [USUAL]


@pytest.mark.parametrize("change", [{"free_slots": 0}, {"memory": LEAST_MEMORY - 1}, {"leaving": True}])
async def test_it_ends_once_it_is_in_the_way(machine: Machine, change: dict[str, Any]) -> None:
    await machine.look()
    machine.pool.free_slots = change.get("free_slots", 1)
    machine.memory = change.get("memory", machine.memory)
    assert await machine.look(leaving="leaving" in change) == []


async def test_one_that_still_rehearses_ends_once_it_is_in_the_way(machine: Machine) -> None:
    machine.pool.standbys.rehearsing = True
    async with asyncio.timeout(5):
        while await machine.look() != [USUAL]:
            await asyncio.sleep(0)
        assert machine.pool.standbys.tries == 1, "one at a time"
        machine.memory = LEAST_MEMORY - 1
        assert await machine.look() == []
        assert machine.warmth._adding is not None
        await machine.warmth._adding


async def test_on_a_busy_machine_it_waits_for_patience(machine: Machine) -> None:
    machine.idle = 0.0
    assert await machine.look() == []
    machine.warmth.timing = Timing(standby_quiet=0.0, standby_patience=0.0)
    assert await machine.look() == [USUAL]


async def test_in_a_burst_of_tasks_none_is_made(machine: Machine) -> None:
    machine.warmth.timing = Timing(standby_quiet=3600.0, standby_patience=3600.0)
    machine.pool.on_taken(Key(1, USUAL))
    assert await machine.look() == []


async def test_what_cannot_be_had_is_not_tried_again_at_once(machine: Machine) -> None:
    machine.pool.standbys.can = False
    await machine.look()
    await machine.look()
    assert machine.pool.standbys.tries == 1


async def test_habits_outlive_the_node_and_choose_the_environment(machine: Machine, tmp_path: Path) -> None:
    await machine.look()
    sharded = Environment(1, "cpu", 1)
    for root in range(3):
        machine.pool.on_taken(Key(root, sharded))
    assert await machine.look() == [sharded]
    assert Habits(tmp_path / "habits.json", USUAL).favourites(2) == [sharded, USUAL]


@pytest.mark.parametrize("text", ["", "{}", "[[1]", '[["two"]]', "[[1, null, 1, 9]]", "[[100000]]"])
def test_habits_that_nobody_wrote_so_are_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "habits.json"
    file.write_text(text)
    assert Habits(file, USUAL).favourites(5) == [USUAL]


def test_habits_that_cannot_be_written_down_still_count(tmp_path: Path) -> None:
    sharded = Environment(1, "cpu", 1)
    habits = Habits(tmp_path / "gone" / "habits.json", USUAL)
    habits.note(sharded)
    assert habits.favourites(1) == [sharded]
