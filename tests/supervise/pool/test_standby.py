"""Standby runners are handed out once, to tasks they fit, and never left behind."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from tests.supervise.conftest import FAKE, until
from tests.supervise.fake_runner import BROKEN, SLOW
from workers.runner.environment import Environment
from workers.supervise.pool.launcher import SpawnLauncher
from workers.supervise.pool.runner_pool import RunnerKey, RunnerPool
from workers.supervise.pool.runner_process import RunnerProcess
from workers.supervise.pool.standby import StandbyKey, Standbys
from workers.system.secret_masking import SecretMasker

STANDBY = StandbyKey(Environment(threads=1), "0")
KEY = RunnerKey(7, *STANDBY[:2])


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[RunnerPool]:
    runner_pool = RunnerPool(tmp_path / "runners", 2, 60.0, 2**30, SecretMasker(), FAKE)

    async def execute(
        key: StandbyKey,
    ) -> RunnerProcess:  # faster than a fork server, whose imports are not needed
        return await runner_pool._launch(SpawnLauncher(FAKE), key.devices)

    runner_pool.standbys = Standbys(execute, runner_pool._end)
    yield runner_pool
    await runner_pool.close()


async def test_a_standby_becomes_the_runner_of_the_first_task_with_its_key(
    pool: RunnerPool, tmp_path: Path
) -> None:
    assert await pool.standbys.add(STANDBY, cache=tmp_path)
    waiting = pool.standbys.all[0].runner.pid
    assert pool.pids == []
    runner = await pool.take(KEY)
    assert (runner.pid, pool.standbys.all) == (waiting, [])
    await pool.give_back(runner, KEY)
    stranger = await pool.take(KEY._replace(root=8, devices="1"))
    assert stranger.pid != waiting
    assert (await pool.take(KEY)).pid == waiting


async def test_a_standby_that_still_warms_up_is_not_handed_out(pool: RunnerPool, tmp_path: Path) -> None:
    slow = StandbyKey(Environment(SLOW), None)
    adding = asyncio.create_task(pool.standbys.add(slow, cache=tmp_path))
    await until(lambda: pool.standbys.count(slow))
    assert await pool.standbys.take(slow) is None
    pid = pool.standbys.all[0].runner.pid
    adding.cancel()
    await asyncio.wait({adding})
    assert not psutil.pid_exists(pid)
    assert not pool.standbys.all


async def test_a_standby_that_cannot_warm_up_is_ended(pool: RunnerPool, tmp_path: Path) -> None:
    assert not await pool.standbys.add(StandbyKey(Environment(BROKEN), None), cache=tmp_path)
    assert not pool.standbys.all
    assert list((tmp_path / "runners").iterdir()) == []


async def test_a_killed_standby_is_not_handed_out(pool: RunnerPool, tmp_path: Path) -> None:
    await pool.standbys.add(STANDBY, cache=tmp_path)
    runner = pool.standbys.all[0].runner
    os.kill(runner.pid, signal.SIGKILL)
    await asyncio.wait_for(runner.ended, 10)
    assert await pool.standbys.take(STANDBY) is None
    await pool.standbys.clear(lambda _: False)
    assert not pool.standbys.all
    assert (await pool.take(KEY)).pid != runner.pid


async def test_an_idle_runner_ends_when_another_job_gets_its_device(pool: RunnerPool) -> None:
    runner = await pool.take(KEY)
    await pool.give_back(runner, KEY)
    await pool.give_back(await pool.take(KEY._replace(devices="1")), KEY._replace(devices="1"))
    assert psutil.pid_exists(runner.pid)
    await pool.take(KEY._replace(root=8))
    assert not psutil.pid_exists(runner.pid), "it would keep the memory that it has used on the GPU"


async def test_a_standby_ends_when_another_task_gets_its_device(pool: RunnerPool, tmp_path: Path) -> None:
    await pool.standbys.add(STANDBY, cache=tmp_path)
    pid = pool.standbys.all[0].runner.pid
    await pool.take(RunnerKey(7, Environment(threads=2), "1"))
    assert psutil.pid_exists(pid)
    await pool.take(RunnerKey(7, Environment(threads=2), "0,2"))
    assert not psutil.pid_exists(pid)


async def test_a_sweep_does_not_end_a_runner_that_a_task_has_just_taken(pool: RunnerPool) -> None:
    other = KEY._replace(root=8)
    first, second = await pool.take(KEY), await pool.take(other)
    for runner, key in ((first, KEY), (second, other)):
        await pool.give_back(runner, key)
        runner.idle_since = -pool.idle_seconds  # idle for too long
    sweeping = asyncio.create_task(pool.sweep())
    await asyncio.sleep(0)
    assert await pool.take(other) is second  # while the sweep ends the first
    await sweeping
    assert (first.alive, second.alive) == (False, True)
    await pool.discard(second)


async def test_closing_the_pool_ends_standbys(pool: RunnerPool, tmp_path: Path) -> None:
    await pool.standbys.add(STANDBY, cache=tmp_path)
    pid = pool.standbys.all[0].runner.pid
    await pool.close()
    assert not psutil.pid_exists(pid)
