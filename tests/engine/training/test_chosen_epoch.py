"""Which measure chooses a retraining's epoch, on data on which loss and AUC disagree."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.train.payload import TrainResult
from jobs.messages.training import TrainTask
from jobs.spec.sections.after import Retrain
from jobs.spec.sections.fit import EarlyStopping
from jobs.spec.sections.monitors import monitors_of_training, monitors_of_trial
from jobs.spec.sections.search import Objective
from tests.engine.helpers import RecordingReport, profiled, spec_of

AUC = Objective(metric="val_auc", direction="max")


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Store 600 rows with 8 % positives. Under class weights the unweighted loss rises from epoch 1 on."""
    folder = tmp_path_factory.mktemp("rare")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 8)).astype(np.float32)
    y = (x[:, 0] + 0.7 * x[:, 1] + 0.8 * rng.normal(size=600) > 2.0).astype(np.int32)
    np.savez(folder / "rare.npz", x=x, y=y)
    return profiled(folder / "profile", source="npz", path=str(folder / "rare.npz"))


def retrain(rare: Any, folder: Path, *, early: dict[str, Any] | None = None, **settings: Any) -> Any:
    from workers.engine.tasks import train

    settings = {"patience": 5, "epochs_cap": 20, **settings}
    fit = {
        "batch_size": 64, "learning_rate": 0.003, "class_weights": {"0": 1, "1": 40},
        "early_stopping": early,
    }  # fmt: skip
    space = [{"name": "units", "kind": "int", "min": 8, "max": 16}]
    search = {"objective": AUC.model_dump(), "space": space}
    spec = spec_of("rare", args={"units": 16}, fit=fit, search=search, after={"retrain": settings})
    report = RecordingReport(folder)
    task = TrainTask(
        folder=str(folder), checkpoints=str(folder / "c"), spec=spec, dataset=rare,
        retrain=spec.after.retrain, objective=AUC, model_name="m",
    )  # fmt: skip
    result = TrainResult.model_validate(train.run(task, report))
    points = [args[1] for args, _ in report.of("metric") if "val_auc" in args[1]]
    warnings = [args[0] for args, _ in report.of("warning")]
    return result, {name: [point[name] for point in points] for name in ("val_loss", "val_auc")}, warnings


def test_the_objective_chooses_the_epoch_where_the_loss_would_choose_the_first(
    rare: Any, tmp_path: Path
) -> None:
    result, curves, _ = retrain(rare, tmp_path)
    assert np.argmin(curves["val_loss"]) == 0
    assert result.choice.metric == "val_auc"
    assert result.choice.epoch == result.best_epoch == 1 + int(np.argmax(curves["val_auc"])) > 5
    assert result.choice.value == result.score == max(curves["val_auc"])
    assert (result.choice.rows, result.choice.direction) == (120, "max")


def test_a_monitor_of_its_own_chooses_the_epoch_and_ends_the_training(rare: Any, tmp_path: Path) -> None:
    result, curves, _ = retrain(rare, tmp_path, monitor="val_loss")
    assert (result.choice.metric, result.choice.epoch, result.choice.stopped_by) == (
        "val_loss",
        1,
        "val_loss",
    )
    assert len(curves["val_auc"]) == 6
    assert result.score == curves["val_auc"][0]


def test_early_stopping_by_another_measure_ends_the_training_and_says_what_it_cut_off(
    rare: Any, tmp_path: Path
) -> None:
    result, curves, warnings = retrain(rare, tmp_path, early={"monitor": "val_loss"})
    assert (result.choice.metric, result.choice.stopped_by) == ("val_auc", "val_loss")
    assert result.choice.epoch == len(curves["val_auc"]) == 6
    assert "stopped_while_improving" in warnings


def test_the_objective_of_a_retrained_model_has_its_interval_on_validation_and_test_rows(
    rare: Any, tmp_path: Path
) -> None:
    result, _, _ = retrain(rare, tmp_path)
    for part in ("validation", "test"):
        objective = result.measured[part]
        assert objective.metric == "val_auc"
        assert objective.low < objective.value < objective.high
        assert objective.rows == 120
    assert result.measured["validation"].value == result.score
    assert result.measured["test"].value == result.metrics["test"]["roc_auc"]


def test_a_checkpoint_with_the_best_epoch_by_another_measure_is_not_resumed(
    rare: Any, tmp_path: Path
) -> None:
    from workers.engine.tasks.train import _TrainRun
    from workers.engine.training.checkpoint import Snapshot

    spec = spec_of("rare", search={"objective": AUC.model_dump(), "space": [
        {"name": "units", "kind": "int", "min": 8, "max": 16}]}, after={"retrain": {}})  # fmt: skip
    task = TrainTask(
        folder=str(tmp_path),
        spec=spec,
        dataset=rare,
        retrain=spec.after.retrain,
        objective=AUC,
        model_name="m",
    )
    run = _TrainRun(task, RecordingReport(tmp_path))
    by_loss = Snapshot(arrays={}, state={"epoch": 3, "best": {"metric": "val_loss"}})
    by_auc = Snapshot(arrays={}, state={"best": {"metric": "val_auc"}})
    assert run._resumable(by_loss) is None
    assert run._resumable(by_auc) is by_auc


def test_early_stopping_follows_the_objective_unless_it_names_another() -> None:
    assert monitors_of_trial(AUC, EarlyStopping()).stop == ("val_auc", "max")
    assert monitors_of_trial(AUC, EarlyStopping(monitor="val_loss")) == (
        ("val_auc", "max"),
        ("val_loss", "min"),
    )
    assert monitors_of_training(AUC, Retrain(), EarlyStopping()).stop == ("val_auc", "max")
    assert monitors_of_training(AUC, Retrain(monitor="val_accuracy"), None).stop == ("val_accuracy", "max")


def test_without_a_search_early_stopping_names_the_measure_and_else_it_is_the_loss() -> None:
    assert monitors_of_training(None, None, None).best == ("val_loss", "min")
    assert monitors_of_training(None, Retrain(), EarlyStopping(monitor="val_auc")).best == ("val_auc", "max")
    assert monitors_of_training(None, None, EarlyStopping(monitor="loss")) == (
        ("val_loss", "min"),
        ("loss", "min"),
    )
