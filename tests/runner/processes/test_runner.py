"""A real runner process: its events from start to end, and its exit."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.task import DatasetFile
from tests.runner.forks import ROOT
from tests.runner.harness import RunnerProcess, profile_of, runner
from tests.runner.tasks import profiled, train_task, trial_task


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


def events_of(events: Iterable[Any], kind: str) -> list[Any]:
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
    done = [e for e in events_of(events, "execution") if e.state == "completed"]
    assert [e.execution for e in done] == [1, 2]
    assert result["score"] == pytest.approx(np.mean([e.score for e in done]))
    assert result["std"] == pytest.approx(np.std([e.score for e in done]))
    for execution in done:
        losses = {
            x: value
            for table in events_of(events, "points") if table.execution == execution.execution
            for x, value in zip(table.at, table.values[table.names.index("val_loss")], strict=True)
        }  # fmt: skip
        assert list(losses) == list(range(1, execution.epochs + 1))
        assert losses[execution.best_epoch] == execution.score == min(losses.values())
    assert events_of(events, "progress")[-1].done == events_of(events, "progress")[-1].total == 12


def test_the_started_event_carries_the_reproducibility_record(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    task = trial_task(base / "record", iris)
    record = events_of(warm.run(task), "started")[0].record
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
    artifacts = {e.role: folder / e.path for e in events_of(events, "artifact")}
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
    warnings = {e.code: e.message for e in events_of(events, "warning")}
    assert warnings.keys() == {"retrain_adds_nothing", "cap_reached"}
    assert "Set epochs_factor to at least 1.5 and retrain." in warnings["retrain_adds_nothing"]


def test_a_failed_trial_reports_its_error_and_the_next_one_starts(
    warm: RunnerProcess, base: Path, iris: DatasetFile
) -> None:
    broken = {"fit": {"epochs": 3, "optimizer": "sgd", "learning_rate": 1e38}}
    events = warm.run(trial_task(base / "nan", iris, trials=({}, broken, {})))
    turns = [(e.type, e.trial) for e in events if e.type in ("trial_begun", "trial_done")]
    assert turns == [(kind, trial) for trial in (1, 2, 3) for kind in ("trial_begun", "trial_done")]
    first, failed, last = events_of(events, "trial_done")
    assert (first.state, failed.state, last.state) == ("completed", "failed", "completed")
    assert failed.error.code == "nan_loss"
    assert "NanLoss" in failed.error.traceback
    assert events[-1].type == "result"
