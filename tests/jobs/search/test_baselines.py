"""The constant prediction's score is known once for each set of validation rows, whatever process dies."""

import time
from pathlib import Path
from typing import Any

import pytest

from jobs.actions.experiments import follow_up
from jobs.actions.runs import attempt_end, schedule, tasks
from jobs.errors import StaleFence
from jobs.messages.events import BaselineMeasured
from jobs.messages.training import TrialTask
from jobs.models import Attempt, Job, Trial
from jobs.queries.runs import events
from jobs.queries.search import answer, baseline, outcomes, recommendation
from jobs.queries.search.algorithm_state import algorithm_state
from jobs.queries.search.trial_columns import read_columns
from jobs.spec.sections.baseline import Baseline, Constant
from jobs.spec.sections.evaluation import Turn
from jobs.states import JobState
from jobs.store.local import LocalStore
from tests.jobs.runs.test_attempts import expire
from tests.jobs.yard import SEARCH, PretendWorker, Yard, begun, ended, placed_search, until_final

ALWAYS_NO = Constant(kind="class", value="no")
K_FOLD = {
    "algorithm": "random",
    "executions_per_trial": 1,
    "evaluation": {"kind": "k_fold", "folds": 2},
    "max_trials": 2,
}


def score_of(score: float | None, **fields: Any) -> Baseline:
    constant = ALWAYS_NO if score is not None else None
    return Baseline(metric="val_accuracy", score=score, constant=constant, **fields)


def measured(trial: Trial, score: float | None, **fields: Any) -> BaselineMeasured:
    return BaselineMeasured(time=time.time(), trial=trial.number, baseline=score_of(score, **fields))


def stored(job: Job) -> list[float | None]:
    job.refresh_from_db()
    return [one.score for one in algorithm_state(job).baselines]


def wanted(attempt: Attempt) -> list[bool]:
    """Return for each execution of an attempt's trials whether its task asks for the score."""
    task = tasks.task_for(attempt.pk, folder=Path("/none"), threads=1)
    assert isinstance(task, TrialTask)
    return [execution.wants_baseline for trial in task.trials for execution in trial.executions]


@pytest.fixture(autouse=True)
def _file_of_the_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStore, "path", lambda _store, digest: tmp_path / digest)


def trial_of(attempt: Attempt) -> Trial:
    return attempt.trials.order_by("number")[0]


def over(installation: Yard, worker: PretendWorker, *known: Baseline, **search: Any) -> Job:
    """Return an ended search whose best trial has a val_accuracy of 0.915, and whose constant is known."""
    job = until_final(worker, installation.submit(search=SEARCH | search))
    state = algorithm_state(job).changed(baselines=known)
    Job.objects.filter(pk=job.pk).update(payload_json=state.to_json())
    job.refresh_from_db()
    return job


# From the first trial to the payload


def test_the_first_report_is_stored_and_later_trials_are_not_asked(
    installation: Yard, worker: PretendWorker
) -> None:
    job, held = placed_search(installation, worker, parallel_trials=2)
    assert [wanted(attempt) for attempt in held] == [[True, True], [True, True]]
    first, second = (trial_of(attempt) for attempt in held)
    worker.report(held[0], begun(first), measured(first, 0.7))
    worker.report(held[1], begun(second), measured(second, 0.6))
    assert stored(job) == [0.7], "two workers may measure it at the same time; the first report stays"
    assert wanted(held[1]) == [False, False], "without folds all executions have the same rows"
    assert all(event["type"] != "baseline" for event in events.read_events(job.pk, after=0).items)


def test_after_a_kill_the_next_attempt_is_asked_again(installation: Yard, worker: PretendWorker) -> None:
    job, held = placed_search(installation, worker)
    trial = trial_of(held[0])
    worker.report(held[0], begun(trial))
    expire(held[0])
    attempt_end.reap()
    with pytest.raises(StaleFence):
        worker.report(held[0], measured(trial, 0.1))
    assert stored(job) == []
    schedule.place_jobs()
    (again,) = (attempt for attempt in worker.claim_all() if attempt.trials.filter(pk=trial.pk).exists())
    assert wanted(again) == [True, True]
    worker.report(again, begun(trial), measured(trial, 0.7), ended(trial))
    assert stored(job) == [0.7]


def test_a_report_that_comes_twice_changes_nothing(installation: Yard, worker: PretendWorker) -> None:
    job, held = placed_search(installation, worker)
    trial = trial_of(held[0])
    worker.report(held[0], begun(trial), measured(trial, 0.7), measured(trial, 0.7))
    assert stored(job) == [0.7]


def test_a_metric_without_a_constant_is_not_asked_for_again(
    installation: Yard, worker: PretendWorker
) -> None:
    job, held = placed_search(installation, worker)
    trial = trial_of(held[0])
    worker.report(held[0], begun(trial), measured(trial, None))
    assert (stored(job), wanted(held[0])) == ([None], [False, False])
    assert baseline.compare_with_constant(job, trial) is None


def test_reports_about_other_rows_or_metrics_are_left_out(installation: Yard, worker: PretendWorker) -> None:
    job, held = placed_search(installation, worker)
    trial = trial_of(held[0])
    other = Baseline(metric="val_loss", score=0.1, constant=ALWAYS_NO)
    worker.report(
        held[0],
        begun(trial),
        measured(trial, 0.7, fold=1),
        BaselineMeasured(time=time.time(), trial=trial.number, baseline=other),
    )
    assert stored(job) == []


def test_several_objectives_have_no_constant(installation: Yard, worker: PretendWorker) -> None:
    objectives = [
        {"metric": "val_accuracy", "direction": "max"},
        {"metric": "val_loss", "direction": "min"},
    ]
    search = {name: value for name, value in SEARCH.items() if name != "objective"}
    job = installation.submit(search={**search, "algorithm": "random", "objectives": objectives})
    assert not baseline.is_wanted(job, Turn(1, None))


# The answer


def test_a_search_that_learned_nothing_names_both_scores_and_proposes_nothing_that_builds_on_it(
    installation: Yard, worker: PretendWorker
) -> None:
    space = [{"name": "dropout", "kind": "float", "min": 0.0, "max": 0.4}, *SEARCH["space"]]
    job = over(installation, worker, score_of(0.951), algorithm="random", space=space)
    result = answer.answer_of_search(job)
    assert result.best is not None and result.baseline is not None
    assert not result.baseline.beaten
    assert result.baseline.text == (
        "No trial beats the constant prediction: always 'no' gives val_accuracy 0.951, the best trial "
        f"{result.best.score:.4g}."
    )
    assert "Look at the findings about the target" in result.baseline.remedy
    assert (result.repeats, result.smaller_range, result.at_edge) == (None, [], [])
    assert read_columns(job)["beats_constant"] is False
    follow_up.queue_narrower_search(job, by=installation.owner)  # it is not proposed, but still possible


def test_a_search_that_learned_something_says_what_its_score_is_worth(
    installation: Yard, worker: PretendWorker
) -> None:
    job = over(installation, worker, score_of(0.62, low=0.5, high=0.7))
    result = answer.answer_of_search(job)
    assert result.baseline is not None
    assert (result.baseline.beaten, result.baseline.may_be_chance) == (True, False)
    assert result.baseline.text == "Constant prediction: 0.62 (always 'no')."
    assert read_columns(job)["beats_constant"] is True


def test_a_small_lead_may_be_chance(installation: Yard, worker: PretendWorker) -> None:
    result = answer.answer_of_search(over(installation, worker, score_of(0.9, low=0.85, high=0.94)))
    assert result.baseline is not None
    assert result.baseline.beaten and result.baseline.may_be_chance
    assert "may be chance" in result.baseline.text


def test_rounding_is_no_lead(installation: Yard, worker: PretendWorker) -> None:
    job = over(installation, worker)
    best = outcomes.best_trials(job, limit=1)[0]
    assert best.score is not None
    for below, is_beaten in ((1e-9, False), (1e-4, True)):
        state = algorithm_state(job).changed(baselines=[score_of(best.score - below)])
        job.payload_json = state.to_json()
        compared = baseline.compare_with_constant(job, best)
        assert compared is not None and compared.is_beaten is is_beaten


def test_a_search_of_an_earlier_release_has_no_comparison(installation: Yard, worker: PretendWorker) -> None:
    job = over(installation, worker)
    result = answer.answer_of_search(job)
    assert result.baseline is None and result.smaller_range == []
    assert read_columns(job)["beats_constant"] is None


def test_with_folds_the_mean_is_over_those_that_the_best_trial_was_trained_on(
    installation: Yard, worker: PretendWorker
) -> None:
    other = Constant(kind="class", value="yes")
    folds = (
        score_of(0.9, repeat=1, fold=1),
        Baseline(metric="val_accuracy", repeat=1, fold=2, score=0.8, constant=other),
        score_of(0.1, repeat=2, fold=1),
    )
    job = over(installation, worker, *folds, **K_FOLD)
    result = answer.answer_of_search(job).baseline
    assert result is not None
    assert result.value == pytest.approx(0.85), "no training of the best trial is of the second repeat"
    assert result.constant == "always the most frequent class"


def test_a_fold_whose_constant_is_unknown_leaves_no_comparison(
    installation: Yard, worker: PretendWorker
) -> None:
    job = over(installation, worker, score_of(0.99, repeat=1, fold=1), **K_FOLD)
    assert answer.answer_of_search(job).baseline is None
    assert (baseline.is_wanted(job, Turn(1, 1)), baseline.is_wanted(job, Turn(1, 2))) == (False, True)


# The recommendation


@pytest.mark.parametrize(("constant", "is_recommended"), [(0.62, True), (0.951, False)])
def test_no_model_is_recommended_if_no_trial_beats_the_constant(
    installation: Yard, worker: PretendWorker, constant: float, *, is_recommended: bool
) -> None:
    job = until_final(worker, installation.submit(search=SEARCH, after={"retrain": {"top": 1}}))
    state = algorithm_state(job).changed(baselines=[score_of(constant)])
    Job.objects.filter(pk=job.pk).update(payload_json=state.to_json())
    root = Job.objects.get(pk=job.pk)
    assert root.state == JobState.COMPLETED and root.children.exists()
    recommended = recommendation.recommend_model(root)
    assert recommended is not None
    assert (recommended.job is not None) is is_recommended
    assert ("No trial beats the constant prediction" in recommended.why) is not is_recommended
