"""A retrained model is compared with its trial: the rule for "clearly worse", and the places that show it."""

from typing import Any

import pytest

from jobs.actions.runs import results
from jobs.actions.runs.job_warnings import MAX_WARNINGS, add_warning
from jobs.actions.search import trials
from jobs.kinds.train.payload import TrainPayload, TrainResult
from jobs.messages.warning_codes import WORSE_THAN_TRIAL
from jobs.models import Job
from jobs.queries.runs import jobs as job_queries
from jobs.queries.search.recommendation import is_doubted
from jobs.queries.search.retraining import chosen_epoch, find_shortfall, objective_of
from jobs.spec.sections.fit import FitSpec
from tests.factories import SEARCH, make_dataset, make_experiment, make_job, make_trials
from tests.markup import text_of
from tests.people import People, browser_of

AFTER = {**SEARCH, "after": {"retrain": {"top": 1}}}
CHOICE = {"metric": "val_accuracy", "direction": "max", "value": 0.94, "epoch": 7, "epochs": 12, "rows": 90}


@pytest.fixture
def search(people: People) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner, spec=AFTER)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 4)  # trial 4: 0.94 ± 0.004
    return job


@pytest.fixture
def training(search: Job, people: People) -> Job:
    return make_job(
        experiment=search.experiment, by=people.owner, kind="train", parent=search, state="running",
        payload={"trial": 4, "values": {"units": 64}},
    )  # fmt: skip


def result(validation: tuple[float, float, float], test: tuple[float, float, float]) -> dict[str, Any]:
    measured = {
        part: {"metric": "val_accuracy", "value": value, "low": low, "high": high, "rows": 90}
        for part, (low, value, high) in (("validation", validation), ("test", test))
    }
    figures = {"test": {"accuracy": test[1]}, "validation": {"accuracy": validation[1]}}
    return {"metrics": figures, "best_epoch": 7, "epochs": 8, "choice": CHOICE, "measured": measured}


@pytest.mark.parametrize(
    ("validation", "test", "part"),
    [
        ((0.90, 0.94, 0.98), (0.90, 0.94, 0.98), None),
        # trial 4 has 0.94 ± 0.04, the half width of the interval on validation rows
        ((0.90, 0.94, 0.98), (0.82, 0.86, 0.91), None),
        ((0.90, 0.94, 0.98), (0.80, 0.85, 0.89), "test"),
        ((0.60, 0.64, 0.68), (0.90, 0.94, 0.98), "validation"),
    ],
)
def test_clearly_worse_means_that_the_intervals_do_not_overlap(
    training: Job, validation: Any, test: Any, part: str | None
) -> None:
    shortfall = find_shortfall(training, TrainResult.model_validate(result(validation, test)))
    assert (shortfall.part if shortfall else None) == part


def test_a_wide_spread_over_executions_widens_the_range(search: Job, training: Job) -> None:
    search.trials.filter(number=4).update(std=0.1)
    worse = TrainResult.model_validate(result((0.90, 0.94, 0.98), (0.70, 0.75, 0.80)))
    assert find_shortfall(training, worse) is None


def test_the_warning_is_on_the_job_its_root_and_in_the_results_with_the_next_step(
    search: Job, training: Job, people: People
) -> None:
    assert results.apply_result(training, result((0.90, 0.94, 0.98), (0.40, 0.48, 0.56))) is None
    for job in (training, search):
        job = Job.objects.get(pk=job.pk)
        [warning] = job_queries.job_out(job).results["warnings"]
        assert (warning["code"], warning["job"]) == ("worse_than_trial", training.pk)
        text = text_of(browser_of(people.owner).get(f"/jobs/{job.pk}"))
        assert (f"{training.label.capitalize()} :" in text) is (job.pk == search.pk)
        assert "on 90 test rows accuracy is 0.48 (95 % interval 0.4 to 0.56)" in text
        assert "trial 4 reached 0.94 ± 0.04 on validation rows" in text
        assert "Do not promote it before you know why" in text


def test_a_model_with_many_warnings_of_its_own_code_is_still_not_recommended(
    search: Job, training: Job
) -> None:
    for number in range(MAX_WARNINGS + 5):
        add_warning(training.pk, code="of_code", message=f"Warning {number} of the code.")
    assert results.apply_result(training, result((0.90, 0.94, 0.98), (0.40, 0.48, 0.56))) is None
    add_warning(training.pk, code=WORSE_THAN_TRIAL, message="The code may send the same code without end.")
    job = Job.objects.get(pk=training.pk)
    assert is_doubted(job) and len(job.warnings) == MAX_WARNINGS + 1


def test_a_result_of_an_earlier_release_has_no_comparison(training: Job) -> None:
    assert results.apply_result(training, {"metrics": {}, "best_epoch": 3}) is None
    assert Job.objects.get(pk=training.pk).warnings == []


def test_the_page_of_a_training_has_the_curve_the_epoch_and_why(training: Job, people: People) -> None:
    Job.objects.filter(pk=training.pk).update(
        state="completed", results_json=result((0.9, 0.94, 0.98), (0.9, 0.93, 0.97))
    )
    page = browser_of(people.owner).get(f"/jobs/{training.pk}")
    text = text_of(page)
    assert "Epoch 7 was chosen by val_accuracy" in text
    assert "Of 12 epochs, number 7 has the highest val_accuracy, 0.9400 , on 90 validation rows" in text
    assert 'names="val_accuracy" mark="7"' in " ".join(page.content.decode().split())


def test_a_training_that_runs_shows_which_measure_will_choose(training: Job, people: People) -> None:
    text = text_of(browser_of(people.owner).get(f"/jobs/{training.pk}"))
    assert "The epoch is chosen by val_accuracy" in text
    assert "ends when val_accuracy has not improved for 10 epochs" in text


def test_a_trial_that_is_retrained_from_its_page_keeps_the_objective_and_is_compared(
    search: Job, people: People
) -> None:
    make_dataset("digits")
    job = trials.retrain(search.trials.get(number=4), by=people.owner)
    assert job.revision is not None
    assert job.revision.spec.after.retrain is not None
    assert job.revision.spec.after.retrain.monitor == "val_accuracy"
    assert isinstance(job.payload, TrainPayload)
    assert job.payload.source is not None
    assert objective_of(job).metric == "val_accuracy"
    chosen = chosen_epoch(job)
    assert chosen is not None
    assert (chosen.best.metric, chosen.trial) == ("val_accuracy", search.trials.get(number=4))


def test_early_stopping_names_no_measure_by_default() -> None:
    assert FitSpec.model_validate({"early_stopping": {}}).early_stopping.monitor is None  # type: ignore[union-attr]
