"""An attempt takes no checkpoint for its own that another one with its number has written."""

from pathlib import Path

from jobs.messages.task import CheckpointFolder, Task
from jobs.messages.training import ExecutionPlan, TrainTask, TrialPlan, TrialTask
from jobs.spec.sections.search import Objective
from tests.jobs.yard import spec
from tests.supervise.conftest import Bench
from workers.supervise.attempt import prepare
from workers.supervise.attempt.database_calls import DatabaseCalls
from workers.supervise.attempt_repository import Assignment

OBJECTIVE = Objective(metric="val_loss", direction="min")
TRIAL = "trial-3/execution-1"


def candidate(path: Path) -> CheckpointFolder:
    return CheckpointFolder(folder=str(path), manifest="m", step=10, epoch=1)


def training(place: Path, **parts: object) -> TrainTask:
    return TrainTask(
        folder="f", checkpoints=str(place), fence=2, spec=spec(), dataset=None, retrain=None, model_name="m",
        objective=OBJECTIVE, **parts,
    )  # fmt: skip


def trial(place: Path, *resume: CheckpointFolder) -> TrialTask:
    plans = (ExecutionPlan(execution=1, seed=1, checkpoints=resume),)
    return TrialTask(
        folder="f", checkpoints=str(place), fence=2, spec=spec(), dataset=None, objective=OBJECTIVE,
        trials=(TrialPlan(number=3, values={}, spec=spec(), executions=plans),),
    )  # fmt: skip


def made(place: Path, *names: str) -> None:
    for name in names:
        (place / name).mkdir(parents=True)


def names(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


async def loaded(bench: Bench, task: Task, tmp_path: Path) -> None:
    """Load the task as a supervisor does it before it starts a runner."""
    bench.repository.tasks[1] = task
    (folder := tmp_path / "attempt").mkdir()
    calls = DatabaseCalls(1, bench.repository, bench.node.timing, None)  # type: ignore[arg-type]
    assignment = Assignment(attempt=1, job=1, root=1, project=7)
    await prepare.load(assignment, bench.node, calls, folder)


async def test_checkpoints_of_the_time_before_a_restore_are_removed(bench: Bench, tmp_path: Path) -> None:
    place = bench.node.checkpoints / "job-1"
    made(place, "0000000010-1", "0000000020-2", "0000000020-12", "trial-2")
    await loaded(bench, training(place), tmp_path)
    assert names(place) == {"0000000010-1", "0000000020-12", "trial-2"}


async def test_those_of_a_trial_are_removed_too(bench: Bench, tmp_path: Path) -> None:
    place = bench.node.checkpoints / "job-1"
    made(place / TRIAL, "0000000010-1", "0000000020-2")
    await loaded(bench, trial(place), tmp_path)
    assert names(place / TRIAL) == {"0000000010-1"}


async def test_a_checkpoint_from_which_it_may_resume_is_kept(bench: Bench, tmp_path: Path) -> None:
    place = bench.node.checkpoints / "job-1"
    made(place / TRIAL, "0000000010-2")
    await loaded(bench, trial(place, candidate(place / TRIAL / "0000000010-2")), tmp_path)
    assert names(place / TRIAL) == {"0000000010-2"}


async def test_a_link_that_a_runner_left_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    place = bench.node.checkpoints / "job-1"
    made(elsewhere := tmp_path / "elsewhere", "0000000020-2")
    made(place, "trial-3")
    (place / TRIAL).symlink_to(elsewhere)
    await loaded(bench, trial(place), tmp_path)
    assert names(elsewhere) == {"0000000020-2"}
