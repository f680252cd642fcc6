"""A real standby: forked, warmed up, then used as a job's runner."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from jobs.messages.control import Start
from jobs.messages.events import RUNNER_EVENT, Failed, Result
from tests.runner.tasks import profiled, trial_task
from workers.runner.environment import Environment
from workers.supervise.pool.fork_servers import ForkServers
from workers.supervise.pool.launcher import RUNNER
from workers.supervise.pool.runner_pool import RunnerKey, RunnerPool
from workers.supervise.pool.runner_process import RunnerProcess
from workers.system.secret_masking import SecretMasker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="fork servers run on Linux alone")
KEY = RunnerKey(1, Environment(threads=1))


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[RunnerPool]:
    folder = tmp_path / "runners"
    runner_pool = RunnerPool(
        folder, 1, 60.0, 2**30, SecretMasker(), RUNNER, ForkServers(folder, 60.0, RUNNER)
    )
    yield runner_pool
    await runner_pool.close()


async def trained(runner: RunnerProcess, folder: Path) -> Result | Failed:
    """Run a small trial and return its final event."""
    folder.mkdir()
    dataset = await asyncio.to_thread(profiled, folder / "iris", bundled="iris")
    task = folder / "task.json"
    task.write_text(trial_task(folder / "attempt", dataset, threads=1).model_dump_json(by_alias=True))
    final: asyncio.Future[Result | Failed] = asyncio.get_running_loop().create_future()

    def on_line(line: bytes) -> None:
        event = RUNNER_EVENT.validate_json(line)
        if isinstance(event, Result | Failed):
            final.set_result(event)

    runner.set_listener(on_line)
    runner.send(Start(task=str(task)))
    return await asyncio.wait_for(final, 120)


async def test_a_standby_trains_for_a_job_with_a_separate_compile_cache(
    pool: RunnerPool, tmp_path: Path
) -> None:
    rehearsals = tmp_path / "rehearsals"
    assert await pool.standbys.add(KEY.standby_key(), cache=rehearsals)
    standby = pool.standbys.all[0].runner
    assert psutil.Process(standby.pid).name() == "ty-standby"
    assert not (standby.folder / "rehearsal").exists()
    rehearsed = {path.name for path in rehearsals.iterdir()}
    assert rehearsed
    runner = await pool.take(KEY)
    assert isinstance(await trained(runner, tmp_path / "job"), Result)
    assert runner is standby
    assert psutil.Process(runner.pid).name() == "ty-runner"
    assert {path.name for path in rehearsals.iterdir()} == rehearsed
    assert list((tmp_path / "job" / "compiled").iterdir())
