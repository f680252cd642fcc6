"""A runner with a pruner gets curves from trials that end on other runners."""

import asyncio
from pathlib import Path
from typing import Any

from jobs.messages.task import DatasetFile
from jobs.messages.training import TrialTask
from jobs.spec.sections.pruning import Curve
from jobs.states import Desired
from tests.engine.helpers import spec_of
from tests.supervise.conftest import Bench, until
from workers.supervise.attempt_repository import DatabaseUnavailable

MEDIAN = {"kind": "median", "startup_trials": 1}
LONG = 500


def curve(trial: int) -> Curve:
    return Curve(trial=trial, execution=1, epochs=3, over=True, best=((1, 0.5),))


def task(folder: Path, *, pruner: dict[str, Any] | None = None, curves: tuple[Curve, ...] = ()) -> TrialTask:
    """Return a task that trains trial 3 for long."""
    search = {
        "algorithm": "random",
        "objective": {"metric": "val_loss", "direction": "min"},
        "space": [{"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-1}],
        "pruner": pruner,
    }
    spec = spec_of(fit={"epochs": LONG}, search=search)
    return TrialTask.model_validate(
        {
            "folder": str(folder),
            "checkpoints": str(folder / "checkpoints"),
            "spec": spec,
            "objective": search["objective"],
            "dataset": DatasetFile(path="", digest="", profile={}),
            "trials": [
                {"number": 3, "values": {}, "spec": spec, "executions": [{"execution": 1, "seed": 0}]}
            ],
            "curves": curves,
        }
    )


def received(bench: Bench) -> list[str]:
    return [event.line for event in bench.repository.lines() if event.line.startswith("received")]


async def test_a_running_runner_gets_each_trial_that_ends_elsewhere_once(
    bench: Bench, tmp_path: Path
) -> None:
    repository = bench.repository
    repository.tasks[1] = task(tmp_path, pruner=MEDIAN, curves=(curve(1),))
    repository.ended = {1: (curve(1),), 2: (), 3: (curve(3),)}  # known, without a figure, its own
    run = bench.start()
    await until(lambda: {1, 2, 3} in repository.queries)
    repository.ended |= {4: (curve(4),), 5: (curve(5),)}
    await until(lambda: received(bench))
    repository.fault = DatabaseUnavailable("away")
    queries = len(repository.queries)
    await until(lambda: len(repository.queries) > queries + 2)
    repository.fault, repository.ended[6] = None, (curve(6),)
    await until(lambda: len(received(bench)) > 1)
    run.supervisor.lease_renewed(0, Desired.STOPPED)
    await run.ended()
    assert received(bench) == ["received [4, 5]", "received [6]"]


async def test_without_a_pruner_the_database_is_not_queried(bench: Bench, tmp_path: Path) -> None:
    bench.repository.tasks[1] = task(tmp_path)
    run = bench.start()
    await until(lambda: len(bench.repository.losses()) > 5)
    await asyncio.sleep(0)
    run.supervisor.lease_renewed(0, Desired.STOPPED)
    await run.ended()
    assert bench.repository.queries == []
