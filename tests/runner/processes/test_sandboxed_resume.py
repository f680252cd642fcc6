"""A real runner in a sandbox, which continues a training that another runner began."""

import asyncio
import os
from pathlib import Path

import pytest

from jobs.messages.events import CheckpointCommitted, Started
from jobs.messages.sandbox import Level
from jobs.messages.task import CheckpointFolder, OwnCode, OwnCodeFile
from jobs.states import Outcome
from tests.runner.tasks import profiled, trial_task
from tests.supervise.conftest import QUICK
from tests.supervise.processes.sandboxed_runs import yard
from workers.confinement.sandbox import bubblewrap, landlock
from workers.supervise.pool.fork_servers import ForkServers
from workers.supervise.pool.launcher import RUNNER

LEVEL = Level.BUBBLEWRAP if os.geteuid() == 0 else Level.LANDLOCK
MEMORY_GIB = 2


async def test_a_runner_in_a_sandbox_resumes_from_the_checkpoint_of_another_runner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if LEVEL is Level.LANDLOCK and not landlock.version():
        pytest.skip("this machine has no Landlock")
    if LEVEL is Level.BUBBLEWRAP and bubblewrap.find() is None:
        pytest.skip("bubblewrap is not installed")
    monkeypatch.setenv("TRAINYARD_CHECKPOINT_SECONDS", "0")
    async with yard(LEVEL, RUNNER, ForkServers) as place:
        bench, repository = place.bench, place.bench.repository
        bench.with_timing(first_progress=QUICK.phase, silence=QUICK.phase, grace=30.0)
        root = repository.store.checkpoint_root
        dataset = await asyncio.to_thread(profiled, tmp_path / "iris", bundled="iris")
        file = OwnCodeFile(path="model.py", place=str(repository.store.path(place.digest)))
        code = OwnCode(digest="1", files=(file,), minimum=Level.PROCESS, network=False)
        resources = {"memory_gib": MEMORY_GIB}
        task = trial_task(
            place.home / "job", dataset, checkpoints=str(root / "job-1"), threads=1, resources=resources
        )
        cache = str(place.home / "compile-cache" / "project-1")
        task = task.model_copy(update={"code": code, "compile_cache": cache})
        repository.tasks[1] = task
        await asyncio.wait_for(bench.start(attempt=1).task, 180)
        assert repository.endings[1].outcome == Outcome.COMPLETED, repository.endings[1]
        *_, saved = (event for event in repository.events[1] if isinstance(event, CheckpointCommitted))
        checkpoint = CheckpointFolder(
            folder=str(root / saved.folder), manifest=saved.manifest, step=saved.step
        )
        plan = task.trials[0].executions[0].model_copy(update={"checkpoints": (checkpoint,)})
        again = task.trials[0].model_copy(update={"executions": (plan,)})
        other = code.model_copy(update={"digest": "2"})
        repository.tasks[2] = task.model_copy(update={"code": other, "trials": (again,), "fence": 2})
        await asyncio.wait_for(bench.start(attempt=2).task, 180)
        assert repository.endings[2].outcome == Outcome.COMPLETED, repository.endings[2]
        assert len(set(bench.pids)) == 2
        (started,) = (event for event in repository.events[2] if isinstance(event, Started))
        assert started.resumed_from == saved.step
