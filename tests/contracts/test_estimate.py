"""An experiment's duration is estimated from earlier trainings."""

from typing import Any

import pytest

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan import estimate
from jobs.spec.plan.estimate import History, PastTraining

STOPPED = PastTraining(epochs=30, best_epoch=25, patience=5)
CUT_OFF = PastTraining(epochs=40, best_epoch=38, patience=5)


def spec(**parts: Any) -> ExperimentSpec:
    fit = {"epochs": 100, "early_stopping": {"patience": 5}}
    body = {"data": {"dataset": "digits"}, "model": {"template": "mlp"}, "fit": fit, **parts}
    return ExperimentSpec.model_validate(body)


@pytest.mark.parametrize(
    ("past", "fit", "epochs"),
    [
        (STOPPED, {"epochs": 100, "early_stopping": {"patience": 5}}, 30),
        (STOPPED, {"epochs": 100, "early_stopping": {"patience": 2}}, 27),
        (STOPPED, {"epochs": 20, "early_stopping": {"patience": 5}}, 20),
        (STOPPED, {"epochs": 100}, 100),
        (CUT_OFF, {"epochs": 100, "early_stopping": {"patience": 5}}, 100),
    ],
)
def test_epochs_are_estimated_from_an_earlier_training(past: PastTraining, fit: Any, epochs: int) -> None:
    assert estimate.epochs_of_one(spec(fit=fit), past) == epochs


def test_an_estimate_has_an_upper_bound_a_likely_value_and_its_basis() -> None:
    history = History([STOPPED, STOPPED], seconds_per_epoch=0.36, where="this experiment")
    time_estimate = estimate.estimate_time(spec(), executions=24, most_epochs=2400, history=history)
    assert (time_estimate.likely_epochs, time_estimate.hours, time_estimate.likely_hours) == (
        720,
        0.24,
        0.072,
    )
    assert (
        time_estimate.sentence == "Based on 2 earlier trainings in this experiment: 30 epochs each at 0.36 s."
    )


def test_retraining_is_estimated_from_the_epochs_of_trials() -> None:
    search = {"space": [{"name": "shuffle", "kind": "boolean"}], "max_trials": 2}
    after = {"retrain": {"top": 2, "patience": 10, "epochs_cap": 200, "epochs_factor": 1.2}}
    history = History([STOPPED], seconds_per_epoch=1.0, where="this experiment")
    time_estimate = estimate.estimate_time(
        spec(search=search, after=after), executions=2, most_epochs=1080, history=history
    )
    assert time_estimate.likely_epochs == 2 * 30 + 2 * (25 + 10 + 30)


def test_the_likely_value_is_at_most_the_upper_bound() -> None:
    history = History([CUT_OFF], seconds_per_epoch=1.0, where="this experiment")
    assert estimate.estimate_time(spec(), executions=1, most_epochs=90, history=history).likely_epochs == 90


def test_without_earlier_trainings_there_is_no_estimate() -> None:
    time_estimate = estimate.estimate_time(spec(), executions=1, most_epochs=100, history=None)
    assert time_estimate[:3] == (None, None, None)
    assert time_estimate.sentence.startswith("No estimate yet")
