"""Tree trainings: rounds, pauses and checkpoints."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from tests.engine.helpers import profiled, spec_of
from tests.engine.models.test_trees import BUNDLED, EPOCHS, METHODS, trained
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.report import TaskInterrupted
from workers.engine.training import checkpoint


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Limit scikit-learn's models in these tests too: its waiting threads would slow each other down."""
    with threadpool_limits(1, user_api="openmp"):
        yield


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Dataset]:
    folder = tmp_path_factory.mktemp("bundled")
    return {
        name: load_dataset(profiled(folder / name, bundled=name), present(spec_of(name).data))
        for name in BUNDLED
    }


def test_a_training_reports_each_round_and_keeps_the_best(
    bundled: dict[str, Dataset], tmp_path: Path
) -> None:
    dataset = bundled["breast_cancer"]
    args = {"method": "boosting", "shrinkage": 1.0}
    prepared, result, report = trained(dataset, tmp_path, epochs=60, patience=5, args=args)
    assert result.is_exhausted
    assert result.epochs == result.best_epoch + 5 < 60
    assert [args[0] for args, _ in report.of("metric")] == list(range(1, result.epochs + 1))
    names = set(report.of("metric")[0][0][1])
    assert names == {"loss", "accuracy", "val_loss", "val_accuracy", "val_auc"} & names
    assert {"loss", "val_loss", "val_accuracy"} <= names
    assert len(prepared.loops[-1].rounds) == result.best_epoch
    validation = prepared.evaluation_set(dataset.parts.validation)
    predictions = prepared.predict(validation.x, 64)
    accuracy = float(((predictions[:, 0] > 0.5) == validation.y).mean())
    assert accuracy == pytest.approx(result.metrics["val_accuracy"])


def test_a_forest_has_all_its_trees_whatever_a_few_validation_rows_prefer(
    bundled: dict[str, Dataset], tmp_path: Path
) -> None:
    prepared, result, _ = trained(bundled["wine"], tmp_path, args={"method": "extra_trees"})
    losses = [epoch["val_loss"] for epoch in result.history]
    assert min(losses) < losses[-1], "some epoch looks better than the last one"
    assert (result.best_epoch, len(prepared.loops[-1].rounds)) == (EPOCHS, EPOCHS)
    assert result.metrics == result.history[-1]


@pytest.mark.parametrize("method", METHODS)
def test_a_paused_training_continues_as_if_it_had_not_been_paused(
    bundled: dict[str, Dataset], tmp_path: Path, method: str
) -> None:
    dataset, args = bundled["iris"], {"method": method}
    _, whole, _ = trained(dataset, tmp_path / "whole", args=args)
    with pytest.raises(TaskInterrupted):
        trained(dataset, tmp_path / "paused", requests=[None] * 4 + ["pause"], args=args)
    newest = checkpoint.list_committed(tmp_path / "paused" / "checkpoints")[0]
    assert all(file.stat().st_size < 20_000 for file in newest.iterdir())
    resumed = checkpoint.read(newest)
    assert resumed.state["epoch"] == 5
    _, result, report = trained(dataset, tmp_path / "resumed", resume=resumed, args=args)
    assert result.history == whole.history
    assert [args[0] for args, _ in report.of("metric")] == list(range(6, EPOCHS + 1))
    [(_, named)] = report.of("resumed")
    assert named["saved"] == named["loaded"]


def test_a_checkpoint_of_other_trees_is_not_continued(bundled: dict[str, Dataset], tmp_path: Path) -> None:
    dataset = bundled["iris"]
    _, whole, _ = trained(dataset, tmp_path / "whole")
    with pytest.raises(TaskInterrupted):
        trained(dataset, tmp_path / "paused", requests=[None] * 4 + ["pause"], args={"shrinkage": 0.5})
    resumed = checkpoint.read(checkpoint.list_committed(tmp_path / "paused" / "checkpoints")[0])
    _, result, report = trained(dataset, tmp_path / "resumed", resume=resumed)
    assert result.history == whole.history
    assert not report.of("resumed")
    [((code, sentence), _)] = report.of("warning")
    assert code == "restarted"
    assert "begins again at epoch 1, although it had reached epoch 5: the trees differ" in sentence
