"""Between epochs: averaged weights, rates cut on a plateau, and what a resume makes of them."""

import numpy as np
import pytest

from tests.engine.test_training import assert_same, final_state
from tests.engine.training import BLOBS, blobs_file, train_on


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return blobs_file(tmp_path_factory.mktemp("blobs"))


PLATEAU = {"kind": "reduce_on_plateau", "factor": 0.5, "patience": 1, "min_delta": 1.0, "cooldown": 1}
COSINE = {"kind": "warmup_cosine", "warmup_epochs": 1.5}
KINDS = {
    "plateau": {"schedule": PLATEAU, "epochs": 7},
    "averages and a schedule": {"schedule": COSINE, "ema": {"momentum": 0.9}, "optimizer": "sgd"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_that_was_broken_off_ends_with_the_same_bits(file, tmp_path, monkeypatch, kind):
    from workers.engine.compiled import program
    from workers.engine.report import Yielding
    from workers.engine.training import checkpoint, training

    fit = {**BLOBS, **KINDS[kind]}
    train_on(file, tmp_path / "unbroken", fit=fit)
    monkeypatch.setattr(training, "PROGRESS_EVERY", 0.0)  # look at the requests at every batch
    monkeypatch.setattr(program, "CALL_SECONDS", 0.0)
    with pytest.raises(Yielding):
        train_on(file, tmp_path / "broken", fit=fit, wants=[None] * 9 + ["pause"])
    middle = checkpoint.read(checkpoint.standing(tmp_path / "broken")[0])
    train_on(file, tmp_path / "broken", fit=fit, resume=middle)
    assert_same(final_state(tmp_path, "unbroken"), final_state(tmp_path, "broken"))


def test_a_plateau_cuts_the_rate_as_keras_callback_does_in_one_fit(file, tmp_path):
    """`min_delta` of 1 lets no epoch be an improvement: cuts depend on patience and cooldown alone."""
    outcome = train_on(file, tmp_path / "c", fit={**BLOBS, **KINDS["plateau"]}).outcome
    rates = [epoch["lr"] for epoch in outcome.history]
    # the first epoch is the best; each cut is followed by an epoch of cooling down
    assert rates == pytest.approx([0.01, 0.01, 0.005, 0.0025, 0.00125, 0.000625, 0.0003125])


def test_a_training_without_validation_repeats_the_rates_of_the_one_that_had_it():
    import keras

    from jobs.contracts.fit import FitSpec
    from workers.engine.training.hooks import hook_for

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1))
    hook = hook_for(FitSpec.model_validate({"schedule": PLATEAU}), rates=[0.1, 0.1, 0.05])
    rates = []
    for epoch in range(1, 5):
        rates.append(float(model.optimizer.learning_rate))
        hook.after_epoch(epoch, {"loss": 1.0}, model)
    assert rates == pytest.approx([0.1, 0.1, 0.05, 0.05])


def test_the_averages_are_measured_and_kept_while_training_goes_on_from_its_own_weights(file, tmp_path):
    from workers.engine.models.losses import measure
    from workers.engine.models.variables import values
    from workers.engine.training.loops import predict

    plain = {**BLOBS, "optimizer": "sgd", "epochs": 3}
    without = train_on(file, tmp_path / "without", fit=plain)
    averaged = train_on(file, tmp_path / "averaged", fit={**plain, "ema": {"momentum": 0.9}})
    losses = [[epoch["loss"] for epoch in one.outcome.history] for one in (without, averaged)]
    assert losses[0] == losses[1], "the averages changed the training"
    raw, kept = final_state(tmp_path, "averaged").arrays["model"], values(averaged.training._model.variables)
    for mine, theirs in zip(final_state(tmp_path, "without").arrays["model"], raw, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert not np.allclose(kept[0], raw[0])
    held = averaged.training._plan.validation
    p = predict(averaged.training._model, held.x, held.batch_size)
    found = measure(held.loss, held.metrics, held.y, p, held.scale)
    assert found["loss"] == pytest.approx(averaged.outcome.figures["val_loss"], abs=1e-9)
