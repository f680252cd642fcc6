"""How long an experiment likely takes, by the trainings before it."""

from typing import Any

import pytest

from jobs.contracts import estimate
from jobs.contracts.estimate import History, Past
from jobs.contracts.experiment import ExperimentSpec

STOPPED = Past(epochs=30, best_epoch=25, patience=5)
CUT_OFF = Past(epochs=40, best_epoch=38, patience=5)


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
def test_a_past_training_tells_how_far_the_next_goes(past: Past, fit: Any, epochs: int) -> None:
    assert estimate.epochs_of_one(spec(fit=fit), past) == epochs


def test_at_most_and_likely_stand_beside_each_other_with_what_they_rest_on() -> None:
    history = History([STOPPED, STOPPED], seconds_per_epoch=0.36, where="this experiment")
    found = estimate.of(spec(), executions=24, most_epochs=2400, history=history)
    assert (found.likely_epochs, found.hours, found.likely_hours) == (720, 0.24, 0.072)
    assert found.sentence == "Likely, by 2 earlier trainings in this experiment: 30 epochs each at 0.36 s."


def test_retraining_counts_by_the_epochs_that_trials_needed() -> None:
    search = {"space": [{"name": "shuffle", "kind": "boolean"}], "max_trials": 2}
    after = {"retrain": {"top": 2, "patience": 10, "epochs_cap": 200, "epochs_factor": 1.2}}
    history = History([STOPPED], seconds_per_epoch=1.0, where="this experiment")
    found = estimate.of(spec(search=search, after=after), executions=2, most_epochs=1080, history=history)
    assert found.likely_epochs == 2 * 30 + 2 * (25 + 10 + 30)


def test_what_is_likely_is_never_more_than_the_most() -> None:
    history = History([CUT_OFF], seconds_per_epoch=1.0, where="this experiment")
    assert estimate.of(spec(), executions=1, most_epochs=90, history=history).likely_epochs == 90


def test_without_a_history_there_is_no_number() -> None:
    found = estimate.of(spec(), executions=1, most_epochs=100, history=None)
    assert found[:3] == (None, None, None)
    assert found.sentence.startswith("No estimate yet")
