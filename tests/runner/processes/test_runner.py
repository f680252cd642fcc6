"""A real runner process: its events from start to end, and its exit."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.control import Compare
from jobs.messages.task import DatasetFile
from jobs.spec.sections.pruning import Curve
from tests.present import present
from tests.runner.forks import ROOT
from tests.runner.harness import RunnerProcess, profile_of, runner
from tests.runner.tasks import FAST, profiled, train_task, trial_task


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runner")


@pytest.fixture(scope="module")
def iris(base: Path) -> DatasetFile:
    return profiled(base / "iris", bundled="iris")


@pytest.fixture(scope="module")
def diabetes(base: Path) -> DatasetFile:
    return profiled(base / "diabetes", bundled="diabetes")


@pytest.fixture(scope="module")
def warm(base: Path) -> Iterator[RunnerProcess]:
    """One runner for all tests that leave it alive."""
    with runner(base / "warm") as process:
        yield process


def of(events: Iterable[Any], kind: str) -> list[Any]:
    return [event for event in events if event.type == kind]


def test_importing_the_runner_loads_neither_django_nor_celery_nor_keras() -> None:
    program = (
        "import sys; import workers.runner.__main__;"
        "print([m for m in ('django', 'celery', 'redis', 'channels', 'keras', 'jax') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_runner_imports_keras_without_scikit_learn_and_pandas() -> None:
    program = (
        "import sys; from workers.runner.libraries import import_keras; import_keras();"
        "print([m for m in ('keras', 'jax', 'sklearn', 'pandas', 'pyarrow') if m in sys.modules]);"
        "import pandas, sklearn"
    )
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "['keras', 'jax']"


def test_a_fork_server_imports_keras_tuner_for_the_first_task_with_code() -> None:
    program = (
        "import os, sys; from jobs.messages.fork import ForkIntoSandbox, ForkRequest;"
        "from workers.runner.forkserver import prepare;"
        "prepare(ForkRequest(folder='/', environment={}, module='m')); print('keras_tuner' in sys.modules);"
        "into_sandbox = ForkIntoSandbox(into_sandbox=True);"
        "prepare(into_sandbox); prepare(into_sandbox); print('keras_tuner' in sys.modules);"
        # A fork has none of the other threads of its parent.
        "print(len(os.listdir('/proc/self/task')))"
    )
    environment = {
        **os.environ, "KERAS_BACKEND": "jax", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["False", "True", "1"]


def test_a_fork_server_leaves_an_error_of_that_import_to_the_task(tmp_path: Path) -> None:
    (tmp_path / "keras_tuner.py").write_text("raise ImportError('broken')")
    program = (
        "import sys; from jobs.messages.fork import ForkIntoSandbox;"
        "from workers.runner.forkserver import prepare;"
        "prepare(ForkIntoSandbox(into_sandbox=True)); print('keras_tuner' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "False"


def test_a_profile_starts_and_ends_without_devices(warm: RunnerProcess, base: Path) -> None:
    events = warm.run(ProfileTask(folder=str(base / "p"), source="bundled", bundled="wine"))
    assert [events[0].type, events[-1].type] == ["started", "result"]
    assert events[0].record["devices"] == []
    assert profile_of(base / "p", events)["profile"]["rows"] == 178
    assert [e.time for e in events] == sorted(e.time for e in events)


def test_a_trial_of_a_classifier_scores_each_execution_at_its_best_epoch(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    events = warm.run(trial_task(base / "trial", iris, seeds=(1, 2)))
    (result,) = events[-1].result["trials"]
    done = [e for e in of(events, "execution") if e.state == "completed"]
    assert [e.execution for e in done] == [1, 2]
    assert result["score"] == pytest.approx(np.mean([e.score for e in done]))
    assert result["std"] == pytest.approx(np.std([e.score for e in done]))
    for execution in done:
        losses = {
            x: value
            for table in of(events, "points") if table.execution == execution.execution
            for x, value in zip(table.at, table.values[table.names.index("val_loss")], strict=True)
        }  # fmt: skip
        assert list(losses) == list(range(1, execution.epochs + 1))
        assert losses[execution.best_epoch] == execution.score == min(losses.values())
    assert of(events, "progress")[-1].done == of(events, "progress")[-1].total == 12


def test_the_started_event_carries_the_reproducibility_record(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    task = trial_task(base / "record", iris)
    record = of(warm.run(task), "started")[0].record
    assert record["packages"].keys() >= {"keras", "jax", "jaxlib", "numpy"}
    assert record["devices"][0]["platform"] == "cpu"
    assert (record["threads"], record["seed"]) == (1, 0)
    assert (record["spec_digest"], record["dataset_digest"]) == (task.spec.digest(), iris.digest)


def test_a_warm_runner_repeats_a_trial_bit_for_bit(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    scores = [
        warm.run(trial_task(base / f"again{i}", iris, args={"units": 8, "dropout": 0.2}))[-1].result["trials"]
        for i in range(2)
    ]
    scores = [trial["score"] for (trial,) in scores]
    assert scores[0] == scores[1]


def test_a_trained_regression_predicts_in_the_unit_of_the_target(
    warm: RunnerProcess, base: Path, diabetes: DatasetFile
) -> None:
    folder = base / "train"
    events = warm.run(train_task(folder, diabetes, args={"units": 16}))
    result = events[-1].result
    artifacts = {e.role: folder / e.path for e in of(events, "artifact")}
    assert set(artifacts) == {"model", "summary", "evaluation", "predictions", "validation_predictions"}
    assert result["metrics"]["test"].keys() >= {"rmse", "mae", "r2"}
    assert result["metrics"]["validation"].keys() >= {"loss", "mse", "mae", "r2"}
    assert result["epochs"] == int(result["best_epoch"] * 1.5)
    assert result["test_rows"] == 88 and result["train_rows"] == 354
    held = np.load(artifacts["validation_predictions"])
    assert held["y_true"].shape == held["y_pred"].shape == (88, 1)
    assert 50 < held["y_pred"].mean() < 250
    assert json.loads(artifacts["summary"].read_text())["layers"]


def test_training_without_a_second_phase_keeps_the_best_epoch(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    fit = {"epochs": 8, "batch_size": 16, "learning_rate": 0.05, "early_stopping": {"patience": 2}}
    events = warm.run(train_task(base / "single", iris, retrain=None, fit=fit))
    result = events[-1].result
    assert result["epochs"] == result["best_epoch"] <= 8
    assert result["metrics"]["test"]["accuracy"] > 0.7
    assert result["class_labels"] == ["setosa", "versicolor", "virginica"]


def test_a_useless_second_phase_and_a_reached_cap_are_reported_as_warnings(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    retrain = {"patience": 3, "epochs_cap": 2, "epochs_factor": 1.2}
    events = warm.run(train_task(base / "warned", iris, retrain=retrain))
    warnings = {e.code: e.message for e in of(events, "warning")}
    assert warnings.keys() == {"retrain_adds_nothing", "cap_reached"}
    assert "Set epochs_factor to at least 1.5 and retrain." in warnings["retrain_adds_nothing"]


def test_a_failed_trial_reports_its_error_and_the_next_one_starts(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    broken = {"fit": {"epochs": 3, "optimizer": "sgd", "learning_rate": 1e38}}
    events = warm.run(trial_task(base / "nan", iris, trials=({}, broken, {})))
    turns = [(e.type, e.trial) for e in events if e.type in ("trial_begun", "trial_done")]
    assert turns == [(kind, trial) for trial in (1, 2, 3) for kind in ("trial_begun", "trial_done")]
    first, failed, last = of(events, "trial_done")
    assert (first.state, failed.state, last.state) == ("completed", "failed", "completed")
    assert failed.error.code == "nan_loss"
    assert "NanLoss" in failed.error.traceback
    assert events[-1].type == "result"


def test_after_a_stop_the_remaining_trials_are_not_started(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    before = len(warm.events)
    warm.start(trial_task(base / "rest", iris, trials=({"fit": LONG["fit"]}, {})))
    warm.wait_for(lambda events: of(events[before:], "points"))
    warm.yield_("stop")
    warm.wait_for(lambda events: events[-1].type == "yielded")
    assert [e.trial for e in of(warm.events[before:], "trial_begun")] == [1]
    assert not of(warm.events[before:], "trial_done")


def test_a_damaged_data_set_fails_the_task(warm: RunnerProcess, base: Path, iris: DatasetFile) -> None:
    (base / "broken.npz").write_bytes(b"not an npz")
    file = iris.model_copy(update={"path": str(base / "broken.npz")})
    assert warm.run(trial_task(base / "bad", file))[-1].code == "bad_data"


def test_a_task_for_another_environment_is_refused(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    warm.run(trial_task(base / "first", iris))
    mesh = {"shape": [2], "axis_names": ["data"], "simulate": 2}
    assert warm.run(trial_task(base / "mesh", iris, mesh=mesh))[-1].code == "environment"
    assert warm.run(trial_task(base / "threads", iris, threads=2))[-1].code == "environment"


def test_an_invalid_task_file_is_a_failure_not_a_crash(warm: RunnerProcess, base: Path) -> None:
    from jobs.messages.control import Start

    (base / "odd.json").write_text('{"kind": "nonsense"}')
    before = len(warm.events)
    warm.send(Start(task=str(base / "odd.json")))
    warm.wait_for(lambda events: len(events) > before)
    assert warm.events[-1].type == "failed"


LONG: dict[str, Any] = {"fit": {"epochs": 100_000, "batch_size": 16}}


def test_a_pause_writes_a_checkpoint_and_the_next_attempt_resumes_from_it(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    task = trial_task(base / "pause", iris, **LONG)
    before = len(warm.events)
    warm.start(task)
    warm.wait_for(lambda events: len(of(events[before:], "points")) > 3)
    warm.yield_("pause")
    warm.wait_for(lambda events: events[-1].type == "yielded")
    events = warm.events[before:]
    last = of(events, "checkpoint")[-1]
    assert events[-1].why == "pause"
    assert last.epoch == sum(len(table.at) for table in of(events, "points"))

    kept = {"folder": last.folder, "manifest": last.manifest, "step": last.step}
    before = len(warm.events)
    warm.start(trial_task(base / "pause", iris, fence=2, resume=(kept,), **LONG))
    warm.wait_for(lambda events: of(events[before:], "points"))
    warm.yield_("stop")
    warm.wait_for(lambda events: events[-1].type == "yielded")
    events = warm.events[before:]
    assert of(events, "started")[0].resumed_from == last.step
    assert of(events, "points")[0].at[0] == last.epoch + 1


def test_a_checkpoint_is_written_on_request(warm: RunnerProcess, base: Path, iris: DatasetFile) -> None:
    before = len(warm.events)
    warm.start(trial_task(base / "asked", iris, **LONG))
    warm.wait_for(lambda events: of(events[before:], "points"))
    warm.checkpoint()
    warm.wait_for(lambda events: of(events[before:], "checkpoint"))
    warm.yield_("stop")
    warm.wait_for(lambda events: events[-1].type == "yielded")


def test_sigterm_writes_a_checkpoint_and_ends_the_runner(base: Path, iris: DatasetFile) -> None:
    with runner(base / "sigterm") as process:
        process.start(trial_task(base / "stopped", iris, **LONG))
        process.wait_for(lambda events: of(events, "points"))
        process.process.send_signal(signal.SIGTERM)
        process.wait_for(lambda events: events[-1].type == "yielded")
        assert process.process.wait(20) == 0
        assert process.events[-1].why == "stop"
        assert process.events[-2].type == "checkpoint"


def test_the_end_of_its_input_ends_an_idle_runner(base: Path) -> None:
    with runner(base / "idle") as process:
        assert process.close() == 0


def test_a_runner_dies_with_its_supervisor(base: Path) -> None:
    program = (
        "import os, subprocess, sys, time; r, w = os.pipe();"
        "p = subprocess.Popen([sys.executable, '-m', 'workers.runner', '--events-fd', str(w), '--parent',"
        " str(os.getpid())], stdin=subprocess.PIPE, pass_fds=(w,), start_new_session=True);"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    child = int(present(parent.stdout).readline())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while _alive(child):
        assert time.monotonic() < deadline, "the runner outlived its supervisor"
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_running_training_is_pruned_by_trials_that_end_elsewhere(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    rule = {
        "algorithm": "random",
        "objective": {"metric": "val_loss", "direction": "min"},
        "space": [{"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-1}],
        "pruner": {"kind": "median", "startup_trials": 2},
    }
    unbeaten = [Curve(trial=trial, execution=1, epochs=1, over=True, best=((1, -1.0),)) for trial in (8, 9)]
    warm.send(Compare(curves=unbeaten))  # no task has begun
    before = len(warm.events)
    warm.start(trial_task(base / "judged", iris, search=rule, fit={**FAST, "epochs": 50_000}))
    warm.wait_for(lambda events: len(of(events[before:], "points")) > 2)
    warm.send(Compare(curves=unbeaten[:1]))
    warm.send(Compare(curves=unbeaten[:1]))  # a repetition does not count
    heard = len(of(warm.events, "points"))
    warm.wait_for(lambda events: len(of(events, "points")) > heard + 2)
    assert not of(warm.events[before:], "trial_done")
    warm.send(Compare(curves=unbeaten))
    warm.wait_for(lambda events: of(events[before:], "result"))
    (done,) = of(warm.events[before:], "trial_done")
    (execution,) = [e for e in of(warm.events[before:], "execution") if e.state == "pruned"]
    assert (done.state, done.verdict.threshold, done.verdict.of) == ("pruned", -1.0, 2)
    assert (done.verdict.epoch, done.verdict.value) == (execution.epochs, execution.best[-1][1])
