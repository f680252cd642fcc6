"""A trial's executions in one call: each trains and ends as it would alone."""

import json
import os
import subprocess
import sys
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.task import CheckpointFolder, DatasetFile
from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask
from tests.engine.helpers import RecordingReport, spec_of
from tests.engine.processes.conftest import SetCost
from tests.engine.small_training import blobs_file
from tests.present import present
from workers.engine.training.checkpointing import INTERVAL_VARIABLE

Outcome = tuple[dict[int, Any], dict[int, list[dict[str, float]]]]
Killed = dict[str, tuple[Path, dict[int, tuple[CheckpointFolder, ...]]]]

FIT = {"epochs": 6, "batch_size": 16, "learning_rate": 0.03}
STEPS = 4
"""Steps per epoch."""
SEARCH = {
    "algorithm": "random",
    "objective": {"metric": "val_loss", "direction": "min"},
    "space": [{"name": "learning_rate", "kind": "float", "min": 0.01, "max": 0.1}],
    "executions_per_trial": 3,
}
MLPS = {
    "dropout and batch normalization": {"units": 8, "dropout": 0.3, "batch_norm": True},
    "plain": {"units": 8, "layers": 2},
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return blobs_file(tmp_path_factory.mktemp("lockstep"))


def task_of(
    file: DatasetFile,
    folder: Path,
    *,
    resume: Any = None,
    completed: Container[int] = (),
    executions: int = 3,
    **parts: Any,
) -> TrialTask:
    """Return a task with one trial; `resume` gives each execution its newest checkpoint."""
    spec = spec_of("blobs", **{"args": MLPS["plain"], "fit": FIT, "search": SEARCH, **parts})
    plans = tuple(
        ExecutionPlan(execution=n, seed=40 + n, checkpoints=(resume or {}).get(n, ()))
        for n in range(1, executions + 1)
        if n not in completed
    )
    return TrialTask(
        folder=str(folder), checkpoints=str(folder), spec=spec, objective=present(spec.search).objective,
        dataset=file, trials=(TrialPlan(number=1, values={}, spec=spec, executions=plans),),
    )  # fmt: skip


def trained(task: TrialTask, report: Any = None) -> Outcome:
    """Run a task; return each execution's result and curve points."""
    from workers.engine.tasks import trial

    report = report or RecordingReport(task.folder)
    (result,) = trial.run(task, report)["trials"]
    curves: dict[int, list[dict[str, float]]] = {}
    for (_, metrics), named in report.of("metric"):
        curves.setdefault(named["execution"], []).append(metrics)
    return {one["execution"]: one for one in result["executions"]}, curves


def assert_alike(first: Outcome, second: Outcome) -> None:
    """Compare results and curves. Another computation order changes the last digits."""
    assert first[1].keys() == second[1].keys()
    for execution, points in first[1].items():
        assert len(points) == len(second[1][execution])
        for one, other in zip(points, second[1][execution], strict=True):
            assert one == pytest.approx(other, rel=1e-4, abs=1e-5)
    for execution, result in first[0].items():
        other = second[0][execution]
        assert (result["state"], result["epochs"]) == (other["state"], other["epochs"])
        assert result["score"] == pytest.approx(other["score"], rel=1e-4)


@pytest.mark.parametrize("name", MLPS)
def test_executions_in_one_call_train_as_they_do_one_by_one(
    file: DatasetFile, tmp_path: Path, set_cost: SetCost, name: str
) -> None:
    calls = set_cost(None)
    alone = trained(task_of(file, tmp_path / "alone", args=MLPS[name]))
    assert calls == []
    calls = set_cost(0.5)
    assert_alike(trained(task_of(file, tmp_path / "together", args=MLPS[name])), alone)
    assert calls == [3] * 6
    losses = [curve[-1]["val_loss"] for curve in alone[1].values()]
    assert len(set(losses)) == 3, "they had the same seed"


def test_each_stops_at_its_own_epoch_and_the_last_ones_continue_alone(
    file: DatasetFile, tmp_path: Path, set_cost: SetCost
) -> None:
    fit = {**FIT, "epochs": 40, "early_stopping": {"monitor": "val_loss", "patience": 2, "min_delta": 0.02}}
    set_cost(None)
    alone = trained(task_of(file, tmp_path / "alone", fit=fit))
    ends = sorted(len(curve) for curve in alone[1].values())
    assert ends[0] < ends[1] <= ends[2], "choose another patience: they end together"
    calls = set_cost(1.5)  # faster for two or more
    assert_alike(trained(task_of(file, tmp_path / "together", fit=fit)), alone)
    assert calls == [3] * ends[1]


def test_a_pause_writes_a_checkpoint_of_each_and_all_resume_from_theirs(
    file: DatasetFile, tmp_path: Path, set_cost: SetCost
) -> None:
    from workers.engine.report import TaskInterrupted
    from workers.engine.tasks import trial

    set_cost(0.5)
    unbroken = trained(task_of(file, tmp_path / "unbroken"))
    report = RecordingReport(tmp_path / "paused")
    # read before the trial and by each execution after each epoch: the second one gets it in its third epoch
    report.requests = [None] * 8 + ["pause"]
    with pytest.raises(TaskInterrupted, match="pause"):
        trial.run(task_of(file, tmp_path / "paused"), report)
    resume = {
        named["execution"]: (
            CheckpointFolder(folder=args[0], manifest=named["manifest"], step=named["step"]),
        )
        for args, named in report.of("checkpoint")
    }
    assert resume.keys() == {1, 2, 3}
    epochs = {named["epoch"] for _, named in report.of("checkpoint")}
    assert epochs == {3}
    states, curves = trained(task_of(file, tmp_path / "paused", resume=resume))
    assert_alike((states, curves), (unbroken[0], {n: curve[3:] for n, curve in unbroken[1].items()}))


def test_finished_resumed_and_new_executions_train_together(
    file: DatasetFile, tmp_path: Path, set_cost: SetCost
) -> None:
    """A lost runner leaves each execution at its own epoch."""
    set_cost(0.5)
    unbroken = trained(task_of(file, tmp_path / "unbroken"))
    checkpoints: dict[int, tuple[CheckpointFolder, ...]] = {}
    for execution, epochs in ((1, 6), (2, 2)):
        plan = task_of(file, tmp_path / f"part-{execution}", completed={1, 2, 3} - {execution})
        short = plan.trials[0].model_copy(update={"until": epochs, "waits": True})
        report = RecordingReport(plan.folder)
        trained(plan.model_copy(update={"trials": (short,)}), report)
        args, named = report.of("checkpoint")[-1]
        folder = CheckpointFolder(folder=args[0], manifest=named["manifest"], step=named["step"])
        checkpoints[execution] = (folder,)
    states, curves = trained(task_of(file, tmp_path / "lost", resume=checkpoints))
    rest = {2: unbroken[1][2][2:], 3: unbroken[1][3]}
    assert_alike((states, curves), (unbroken[0], rest))


POINTS = ("batch:8", "epoch:11", "checkpoint.arrays:15")


@pytest.fixture(scope="module")
def killed(file: DatasetFile, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """For each point of death, a task's folder and each execution's newest checkpoint."""
    folders = {point: tmp_path_factory.mktemp("killed") for point in POINTS}
    tasks = {point: task_of(file, folder).model_dump_json() for point, folder in folders.items()}
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.processes.lockstep_child"],
        env={**os.environ, INTERVAL_VARIABLE: "0"},
        input=json.dumps(tasks), capture_output=True, text=True,
    )  # fmt: skip
    newest: dict[str, dict[int, tuple[CheckpointFolder, ...]]] = {point: {} for point in POINTS}
    for body in map(json.loads, done.stdout.splitlines()):
        point, ended, execution = (body.pop(name, None) for name in ("point", "ended", "execution"))
        if execution is None:
            assert ended == -9, done.stderr[-3000:]
        else:
            newest[point][execution] = (CheckpointFolder(**body),)
    return {point: (folders[point], newest[point]) for point in POINTS}


@pytest.mark.parametrize("point", POINTS)
def test_executions_that_are_killed_together_resume_each_from_its_checkpoint(
    file: DatasetFile,
    tmp_path: Path,
    set_cost: SetCost,
    killed: Killed,
    point: str,
) -> None:
    set_cost(0.5)
    unbroken = trained(task_of(file, tmp_path / "unbroken"))
    folder, newest = killed[point]
    assert newest, "it was killed before any checkpoint"
    states, curves = trained(task_of(file, folder, resume=newest))
    done = {execution: checkpoint.step // STEPS for execution, (checkpoint,) in newest.items()}
    rest = {n: curve[done.get(n, 0) :] for n, curve in unbroken[1].items()}
    assert_alike((states, curves), (unbroken[0], rest))


def test_one_that_diverges_fails_its_trial_and_is_reported(
    file: DatasetFile,
    tmp_path: Path,
    set_cost: SetCost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from workers.engine.compiled.vmapped import VmappedProgram
    from workers.engine.tasks import trial

    calls = set_cost(0.5)
    train = VmappedProgram.train

    def diverging(self: Any, inputs: Sequence[Any], shared: Any) -> list[Any]:
        first, (state, logs, predictions), third = train(self, inputs, shared)
        loss = float("nan") if len(calls) == 2 else logs["loss"]
        return [first, (state, {**logs, "loss": loss}, predictions), third]

    monkeypatch.setattr(VmappedProgram, "train", diverging)
    report = RecordingReport(tmp_path)
    assert trial.run(task_of(file, tmp_path), report)["trials"] == []
    (((error,), _),) = report.of("trial_finished")
    assert "the loss became nan in epoch 2" in str(error)
    states = [(args[0], args[1]) for args, _ in report.of("execution")]
    assert states == [(1, "running"), (2, "running"), (3, "running"), (2, "failed")]
    left = {named["execution"]: named["epoch"] for _, named in report.of("checkpoint")}
    assert left == {1: 2, 3: 2}, "the others resume from there when the trial is retried"
