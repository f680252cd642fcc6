"""Hooks between epochs: averaged weights, learning rate reductions on a plateau, and resuming."""

from pathlib import Path

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from tests.engine.small_training import BLOBS, blobs_file, train_on
from tests.engine.training.test_training import assert_same, final_state


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return blobs_file(tmp_path_factory.mktemp("blobs"))


PLATEAU = {"kind": "reduce_on_plateau", "factor": 0.5, "patience": 1, "min_delta": 1.0, "cooldown": 1}
COSINE = {"kind": "warmup_cosine", "warmup_epochs": 1.5}
KINDS = {
    "plateau": {"schedule": PLATEAU, "epochs": 7},
    "averages and a schedule": {"schedule": COSINE, "ema": {"momentum": 0.9}, "optimizer": "sgd"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_training_ends_with_the_same_bits(
    file: DatasetFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from workers.engine.compiled import training_time
    from workers.engine.report import TaskInterrupted
    from workers.engine.training import checkpoint, training

    fit = {**BLOBS, **KINDS[kind]}
    train_on(file, tmp_path / "unbroken", fit=fit)
    monkeypatch.setattr(training, "REQUEST_INTERVAL", 0.0)  # check for requests after every batch
    monkeypatch.setattr(training_time, "TARGET_CALL_SECONDS", 0.0)
    with pytest.raises(TaskInterrupted):
        train_on(file, tmp_path / "broken", fit=fit, requests=[None] * 9 + ["pause"])
    middle = checkpoint.read(checkpoint.list_committed(tmp_path / "broken")[0])
    train_on(file, tmp_path / "broken", fit=fit, resume=middle)
    assert_same(final_state(tmp_path, "unbroken"), final_state(tmp_path, "broken"))


def test_a_plateau_reduces_the_rate_as_the_keras_callback_does_in_one_fit(
    file: DatasetFile, tmp_path: Path
) -> None:
    """With `min_delta` 1 no epoch improves: reductions depend only on patience and cooldown."""
    result = train_on(file, tmp_path / "c", fit={**BLOBS, **KINDS["plateau"]}).result
    rates = [epoch["lr"] for epoch in result.history]
    # the first epoch is the best; each reduction is followed by an epoch of cooldown
    assert rates == pytest.approx([0.01, 0.01, 0.005, 0.0025, 0.00125, 0.000625, 0.0003125])


def test_a_training_without_validation_replays_the_rates_of_the_one_with_it() -> None:
    import keras

    from jobs.spec.sections.fit import FitSpec
    from workers.engine.training.hooks import hook_for

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1))
    hook = hook_for(FitSpec.model_validate({"schedule": PLATEAU}), rates=[0.1, 0.1, 0.05])
    rates = []
    for epoch in range(1, 5):
        rates.append(float(model.optimizer.learning_rate))
        hook.after_epoch(epoch, {"loss": 1.0}, model)
    assert rates == pytest.approx([0.1, 0.1, 0.05, 0.05])


def test_averages_are_validated_and_saved_while_training_continues_with_its_own_weights(
    file: DatasetFile, tmp_path: Path
) -> None:
    from workers.engine.models.losses import compute_metrics
    from workers.engine.models.variables import values
    from workers.engine.training.loops import predict

    plain = {**BLOBS, "optimizer": "sgd", "epochs": 3}
    without = train_on(file, tmp_path / "without", fit=plain)
    averaged = train_on(file, tmp_path / "averaged", fit={**plain, "ema": {"momentum": 0.9}})
    losses = [[epoch["loss"] for epoch in one.result.history] for one in (without, averaged)]
    assert losses[0] == losses[1], "the averages changed the training"
    raw, averages = (
        final_state(tmp_path, "averaged").arrays["model"],
        values(averaged.training._model.variables),
    )
    for mine, theirs in zip(final_state(tmp_path, "without").arrays["model"], raw, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert not np.allclose(averages[0], raw[0])
    data = averaged.training._plan.validation
    p = predict(averaged.training._model, data.x, data.batch_size)
    metrics = compute_metrics(data.loss, data.metrics, data.y, p, data.scale)
    assert metrics["loss"] == pytest.approx(averaged.result.metrics["val_loss"], abs=1e-9)


def test_the_keys_of_hooks_in_checkpoints_do_not_change() -> None:
    from jobs.spec.sections.fit import FitSpec
    from workers.engine.training.hooks import hook_for

    fit = FitSpec.model_validate({"schedule": PLATEAU, "ema": {"momentum": 0.9}})
    assert list(hook_for(fit).state()) == ["Averages", "Plateau"]
    assert list(hook_for(fit, rates=[0.1]).state()) == ["Averages", "Replay"]


def test_the_keys_of_the_first_phase_in_checkpoints_do_not_change() -> None:
    from dataclasses import fields

    from workers.engine.tasks.first_phase import FIND_PHASE, RETRAIN_PHASE, FirstPhase

    names = [field.name for field in fields(FirstPhase)]
    assert names == ["best_epoch", "epochs", "steps", "score", "figures", "rates", "stopped_by"]
    # Checkpoints of earlier releases lack the fields that were added.
    assert FirstPhase(3, 5, 50, 0.9, {}).stopped_by == ""
    assert (FIND_PHASE, RETRAIN_PHASE) == ("find", "again")
