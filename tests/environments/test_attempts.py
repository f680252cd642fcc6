"""The packages of a task's code are installed before its runner starts, and the runner imports them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.install.payload import InstallTask
from jobs.messages.environments import PackageChoice
from jobs.messages.events import Phase, Points, Warned
from jobs.messages.sandbox import Level, LevelState
from jobs.spec.checks.packages import digest_of
from jobs.states import Desired, Outcome
from tests.environments.packages import source, wheel
from tests.runner.processes.test_scripts import train_task
from tests.supervise.conftest import until
from tests.supervise.processes.sandboxed_runs import Yard, yard
from workers.confinement.environments.building import BuildLimits
from workers.confinement.environments.environments import Environments
from workers.confinement.environments.folder import EnvironmentFolder
from workers.confinement.environments.index import PackageIndex
from workers.confinement.sandbox.gpus import SandboxGpu
from workers.supervise.attempt import attempt_gpus
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.packages import Packages
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.pool.launcher import RUNNER
from workers.supervise.pool.sandbox_gpus import SandboxGpus


@pytest.fixture
async def place(levels: tuple[LevelState, ...], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Yard]:
    """A node that installs packages from a folder of wheels."""
    offered = [
        level
        for level in Level
        if level is not Level.PROCESS and any(state.offered and state.level is level for state in levels)
    ]
    if not offered:
        pytest.skip("this machine offers no sandbox")
    async with yard(offered[0]) as new_yard:
        wheels = new_yard.home.parent / "wheels"
        wheels.mkdir()
        wheels.chmod(0o755)
        pool = new_yard.bench.node.pool
        assert pool.sandboxes is not None
        packages = Packages(
            Environments(
                EnvironmentFolder(new_yard.home / "environments"),
                read_index=lambda: PackageIndex(links=(str(wheels),), readable=(str(wheels),)),
            ),
            pool.sandboxes, BuildLimits(seconds=60), lambda: pool.isolation,
        )  # fmt: skip
        new_yard.bench.node = replace(new_yard.bench.node, packages=packages)
        yield new_yard
        packages.close()


def wheels_of(place: Yard) -> Path:
    return place.home.parent / "wheels"


def give(place: Yard, number: int, *requirements: str, steps: list[Any], **fields: Any) -> None:
    place.script(number, *steps)
    tasks = place.bench.repository.tasks
    task = tasks[number]
    assert task.code is not None
    code = task.code.model_copy(update={"requirements": requirements, "python": "", **fields})
    tasks[number] = task.model_copy(update={"code": code})


async def run(place: Yard, number: int) -> AttemptEnd:
    await place.bench.run(attempt=number, root=number)
    return place.bench.repository.endings[number]


def printed(place: Yard, number: int) -> list[str]:
    return [line.line for line in place.bench.repository.lines(number)]


async def test_a_runner_imports_the_packages_of_its_code(
    place: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(wheels_of(place), "first", "2.5")
    give(place, 1, "first>=2", steps=[["import", "first"]])
    ending = await run(place, 1)
    assert ending.outcome is Outcome.COMPLETED, (ending, printed(place, 1))
    assert "2.5" in printed(place, 1)
    assert " + first==2.5" in printed(place, 1)
    events = place.bench.repository.events[1]
    assert "installing packages" in [event.name for event in events if isinstance(event, Phase)]
    (recorded, choice) = place.bench.repository.packages[1]
    assert [(package.name, package.version) for package in recorded.packages] == [("first", "2.5")]
    assert choice == PackageChoice(requirements=digest_of(["first>=2"]), resolution="")
    # The next run gets the recorded packages. The worker has a GPU that no sandbox can have.
    monkeypatch.setattr(attempt_gpus, "needs_jax", lambda _task: True)
    gpus = SandboxGpus({"0": SandboxGpu("MIG-a", None)})
    place.bench.node = replace(place.bench.node, devices=Devices({"gpu:0": "0"}), sandbox_gpus=gpus)
    wheel(wheels_of(place), "first", "2.6")
    give(place, 2, "first>=2", steps=[["import", "first"]], sets=(recorded,))
    await run(place, 2)
    assert printed(place, 2) == ["2.5"]
    (warned,) = [event for event in place.bench.repository.events[2] if isinstance(event, Warned)]
    assert warned.code == "no_gpu" and warned.message.startswith(attempt_gpus.NO_GPU_IN_SANDBOX)
    assert place.bench.node.devices.next(1) == ("0",)


async def test_a_script_in_a_real_runner_imports_another_version_than_the_runner(place: Yard) -> None:
    wheel(wheels_of(place), "pydantic", "0.1")
    place.bench.node.pool.module = RUNNER
    place.bench.with_timing(first_progress=120.0, silence=60.0)
    text = "import pydantic\nreport(1, val_accuracy=float(pydantic.VERSION))\n"
    task = train_task(place.home, text)
    assert task.code is not None
    code = task.code.model_copy(update={"requirements": ("pydantic<1",)})
    place.bench.repository.tasks[1] = task.model_copy(
        update={"code": code, "checkpoints": str(place.home / "artifacts" / "checkpoints" / "job-1")}
    )
    ending = await run(place, 1)
    assert ending.outcome is Outcome.COMPLETED, (ending, printed(place, 1))
    events = place.bench.repository.events[1]
    tables = [event for event in events if isinstance(event, Points) and "val_accuracy" in event.names]
    assert [table.values[table.names.index("val_accuracy")] for table in tables] == [(0.1,)]
    # An installation ahead of runs starts a runner with the same packages, and nothing else.
    place.bench.repository.tasks[2] = InstallTask(
        folder=task.folder, checkpoints=task.checkpoints, code=code, for_engine=False
    )
    ending = await run(place, 2)
    assert ending.outcome is Outcome.COMPLETED, (ending, printed(place, 2))
    assert any("the packages for scripts are ready" in line for line in printed(place, 2))
    assert place.bench.repository.packages[2] == place.bench.repository.packages[1]


async def test_the_environment_is_kept_while_a_run_uses_it(place: Yard) -> None:
    wheel(wheels_of(place), "first")
    give(place, 1, "first", steps=[["import", "first"], ["hold"]])
    started = place.bench.start(attempt=1, root=1)
    await until(lambda: "1.0" in printed(place, 1), 30)
    packages = place.bench.node.packages
    assert packages is not None
    assert packages.environments.evict(0) == []
    started.supervisor.lease_renewed(0.0, Desired.KILLED)
    await started.ended()
    assert len(packages.environments.evict(0)) == 1


async def test_a_failed_installation_fails_the_job_with_its_cause_and_log(place: Yard) -> None:
    give(place, 1, "absent", steps=[])
    ending = await run(place, 1)
    assert (ending.outcome, ending.code) == (Outcome.FAILED, "package_not_found")
    assert "no package 'absent'" in ending.message
    assert any("absent was not found" in line for line in printed(place, 1))


async def test_another_python_than_the_code_asks_for_fails_the_job(place: Yard) -> None:
    give(place, 1, steps=[], requires_python=">=9")
    ending = await run(place, 1)
    assert (ending.outcome, ending.code) == (Outcome.FAILED, "package_python")


@pytest.mark.parametrize("desired", [Desired.KILLED, Desired.STOPPED])
async def test_a_kill_or_stop_of_the_job_ends_the_installation(place: Yard, desired: Desired) -> None:
    source(wheels_of(place), "slow", "import time; time.sleep(120)")
    give(place, 1, "slow", steps=[])
    started = place.bench.start(attempt=1, root=1)
    await until(lambda: any("Building slow" in line for line in printed(place, 1)), 30)
    started.supervisor.lease_renewed(0.0, desired)
    await asyncio.wait_for(started.task, 20)
    expected = Outcome.KILLED if desired is Desired.KILLED else Outcome.STOPPED
    assert place.bench.repository.endings[1].outcome is expected
    assert not list((place.home / "environments").glob("*/venv"))
