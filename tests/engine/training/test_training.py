"""Training: batches, resuming in the middle of an epoch, early stopping, interruptions, failures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.helpers import RecordingReport, spec_of
from tests.engine.small_training import BLOBS, blobs_file, train_on
from workers.engine.data.batches import Batches, row_weights
from workers.engine.errors import BadSpec, NanLoss
from workers.engine.training.checkpoint import Snapshot


class TrainOnBlobs:
    """Trains on blobs and returns the result; it keeps the last training and its report."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = blobs_file(folder)
        self.training: Any = None
        self.report = RecordingReport()

    def __call__(self, *, folder: str = "c", **options: Any) -> Any:
        self.training, result, self.report = train_on(self._file, self._folder / folder, **options)
        return result


@pytest.fixture
def train(tmp_path: Path) -> TrainOnBlobs:
    return TrainOnBlobs(tmp_path)


def test_every_row_is_used_once_per_epoch_in_a_different_order() -> None:
    x = np.arange(10)[:, None]
    batches = Batches(x, x, np.ones(10, np.float32), size=4, seed=3, shuffle=True)
    used = [np.concatenate([b[0][b[2] > 0, 0] for b in batches.draw(epoch)]) for epoch in (1, 2, 1)]
    assert sorted(used[0]) == list(range(10))
    assert not np.array_equal(used[0], used[1])
    np.testing.assert_array_equal(used[0], used[2])
    assert {len(b[0]) for b in batches.draw(1)} == {4}


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    from sklearn.utils.class_weight import compute_sample_weight

    y = np.array([0] * 9 + [1] + [2] * 4)
    weights = row_weights(y, 3, "balanced", ("a", "b", "c"))
    np.testing.assert_allclose(weights, compute_sample_weight("balanced", y), rtol=1e-6)
    assert weights[y == 0].sum() == pytest.approx(weights[y == 1].sum())


def test_padding_the_last_batch_trains_like_the_short_batch_of_keras(train: TrainOnBlobs) -> None:
    import keras

    from jobs.spec.data.profile import Profile
    from workers.engine.models.build import build
    from workers.engine.models.scaling import measure_scaling

    result = train(fit={**BLOBS, "shuffle": False}, args={"units": 8})
    batches, ours = train.training._plan.batches, train.training._model
    assert len(batches.x) % batches.size
    profile = Profile(
        rows=90, kind="vector", task="multiclass", target="y", features=("x",), input_shape=(4,),
        outputs=3, columns=(), preview=(),
    )  # fmt: skip
    scaling = measure_scaling(batches.x, batches.y, profile)
    plain = build(spec_of("blobs", args={"units": 8}, fit=BLOBS), profile, scaling, name="t", seed=0)
    plain.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    plain.fit(batches.x, batches.y, batch_size=16, epochs=result.best_epoch, shuffle=False, verbose=0)
    for mine, theirs in zip(ours.variables, plain.variables, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-5)


def test_a_pruner_gets_each_best_epoch_and_each_epoch_is_tracked_once(
    train: TrainOnBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.training import checkpoint, early_stopping

    updates, received, update = [], [], early_stopping.BestTracker.update

    def recorded(self: early_stopping.BestTracker, epoch: int, value: float) -> bool:
        updates.append(epoch)
        return update(self, epoch, value)

    monkeypatch.setattr(early_stopping.BestTracker, "update", recorded)
    result = train(pruning_check=lambda epoch, best: received.append((epoch, list(best))))
    losses = [metrics["val_loss"] for metrics in result.history]
    best = [(e, loss) for e, loss in enumerate(losses, 1) if loss == min(losses[:e])]
    assert (result.best, updates) == (tuple(best), [1, 2, 3, 4])
    assert received == [(epoch, [one for one in best if one[0] <= epoch]) for epoch in (1, 2, 3)]
    ended = checkpoint.read(checkpoint.list_committed(tmp_path / "c")[0])
    assert train(resume=ended).best == tuple(best)


def final_state(tmp_path: Path, folder: str) -> Snapshot:
    from workers.engine.training import checkpoint

    return checkpoint.read(checkpoint.list_committed(tmp_path / folder)[0])


def assert_same(first: Snapshot, second: Snapshot) -> None:
    for group, arrays in first.arrays.items():
        for one, other in zip(arrays, second.arrays[group], strict=True):
            assert one.tobytes() == other.tobytes(), group
    strip = lambda state: {k: v for k, v in state.items() if k != "seconds"}  # noqa: E731
    assert strip(first.state) == strip(second.state)
    assert first.history == second.history


@pytest.mark.parametrize("after", [1, 5])
def test_a_training_interrupted_within_an_epoch_ends_with_the_same_bits(
    train: TrainOnBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    from workers.engine.compiled import training_time
    from workers.engine.report import TaskInterrupted
    from workers.engine.training import checkpoint, training

    train(folder="unbroken")
    monkeypatch.setattr(training, "REQUEST_INTERVAL", 0.0)  # check for requests after every batch
    monkeypatch.setattr(training_time, "TARGET_CALL_SECONDS", 0.0)
    with pytest.raises(TaskInterrupted):
        train(folder="broken", requests=[None] * after + ["pause"])
    middle = checkpoint.read(checkpoint.list_committed(tmp_path / "broken")[0])
    assert middle.state["batch"] > 0
    train(folder="broken", resume=middle)
    assert_same(final_state(tmp_path, "unbroken"), final_state(tmp_path, "broken"))


def test_a_resumed_training_reports_that_its_weights_are_those_of_the_checkpoint(
    train: TrainOnBlobs, tmp_path: Path
) -> None:
    train()
    saved = final_state(tmp_path, "c")
    train(resume=saved)
    ((_, reported),) = train.report.of("resumed")
    assert reported["epoch"] == saved.state["epoch"] > 0
    assert reported["saved"] == reported["loaded"] == saved.weights != ""
    saved.arrays["model"][0] += 1
    train(resume=saved)
    ((_, reported),) = train.report.of("resumed")
    assert reported["loaded"] != reported["saved"], "the digest is of the loaded weights"


def test_a_finished_training_resumes_as_finished(train: TrainOnBlobs, tmp_path: Path) -> None:
    first = train()
    again = train(resume=final_state(tmp_path, "c"))
    assert (again.epochs, again.best_epoch, again.metrics) == (first.epochs, first.best_epoch, first.metrics)
    assert not train.report.of("metric")


def test_the_model_ends_with_the_weights_of_its_best_epoch(train: TrainOnBlobs) -> None:
    from workers.engine.models.losses import compute_metrics
    from workers.engine.training.loops import predict

    result = train(fit={**BLOBS, "epochs": 12, "learning_rate": 0.5}, patience=3)
    data = train.training._plan.validation
    p = predict(train.training._model, data.x, data.batch_size)
    metrics = compute_metrics(data.loss, data.metrics, data.y, p, data.scale)
    assert metrics["loss"] == pytest.approx(result.metrics["val_loss"], abs=1e-9)
    assert result.metrics["val_loss"] == min(epoch["val_loss"] for epoch in result.history)


def test_patience_ends_a_training_early(train: TrainOnBlobs) -> None:
    result = train(fit={**BLOBS, "epochs": 60, "learning_rate": 0.3}, patience=2)
    assert result.epochs == result.best_epoch + 2 < 60


def test_a_loss_that_is_not_finite_fails_the_training(train: TrainOnBlobs) -> None:
    with pytest.raises(NanLoss, match="epoch 1"):
        train(fit={**BLOBS, "optimizer": "sgd", "learning_rate": 1e38})


def test_weights_for_unknown_classes_are_rejected(train: TrainOnBlobs) -> None:
    with pytest.raises(BadSpec, match="class_weights names"):
        train(fit={**BLOBS, "class_weights": {"x": 2.0}})


def test_as_many_steps_run_in_one_call_as_the_spec_has_which_changes_no_metric(
    train: TrainOnBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.training.program_loop import ProgramLoop

    plain, sizes, run = train(), [], ProgramLoop._train

    def spy(self: Any, block: Any, first: int, end: int, steps_left: int) -> Any:
        sizes.append(end - first)
        return run(self, block, first, end, steps_left)

    monkeypatch.setattr(ProgramLoop, "_train", spy)
    fused = train(fit={**BLOBS, "steps_per_execution": 3})
    assert fused.metrics == plain.metrics
    assert sizes == [3, 1] * 4, "an epoch has 4 steps"


def test_a_fixed_number_of_steps_is_lowered_only_for_calls_near_the_watchdogs_limit() -> None:
    from workers.engine.compiled.training_time import CallLength

    length = CallLength(8)
    length.record(8, 0.001)
    length.record(8, 9.0)
    assert (length.steps, length.settled) == (8, True)
    length.record(8, 11.0)
    assert length.steps == 4


def test_balanced_classes_and_clipping_train(train: TrainOnBlobs) -> None:
    result = train(fit={**BLOBS, "class_weights": "balanced", "clipnorm": 1.0})
    assert result.epochs == 4


def test_a_requested_checkpoint_is_written_and_the_training_continues(train: TrainOnBlobs) -> None:
    result = train(requests=["checkpoint"])
    assert result.epochs == 4
    assert [named["epoch"] for _, named in train.report.of("checkpoint")] == [1, 4]


def test_the_train_task_reports_what_it_does_while_it_does_no_steps(tmp_path: Path) -> None:
    from jobs.messages.training import TrainTask
    from tests.engine.helpers import RecordingReport, spec_of
    from tests.engine.small_training import blobs_file
    from workers.engine.tasks import train as task

    spec = spec_of("blobs", args={"units": 11}, fit={"epochs": 2, "batch_size": 16})
    report = RecordingReport(tmp_path)
    train_task = TrainTask(
        folder=str(tmp_path), fence=1, dataset=blobs_file(tmp_path), spec=spec, retrain=None, model_name="m",
        objective={"metric": "val_loss", "direction": "min"},
    )  # fmt: skip
    task.run(train_task, report)
    kinds = [(name, args[0]) for name, args, _ in report.calls if name in ("phase", "progress")]
    assert kinds[0] == ("phase", "loading")
    assert ("phase", "compiling") in kinds[: kinds.index(("progress", 1))]
    after = [kind for kind in kinds[kinds.index(("progress", 2)) + 1 :] if kind != ("phase", "compiling")]
    assert after == [("phase", "saving"), ("phase", "evaluating")]
