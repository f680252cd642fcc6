"""The answer of a search, and the searches that follow from it."""

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.actions.experiments import follow_up
from jobs.actions.runs import pipeline, schedule
from jobs.errors import BadInput, Conflict, StaleState
from jobs.models import AuditEvent, Job
from jobs.queries.code import dry_builds
from jobs.queries.runs import progress
from jobs.queries.search import answer, outcomes, retrained_models, scoring
from jobs.spec.checks.dry_build import Unasked
from tests.jobs.yard import SEARCH, PretendWorker, Yard, turn, until_final

FLOAT = {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.4}


def scored(installation: Yard, worker: PretendWorker, scores: dict[int, list[float]], **search: Any) -> Job:
    """Return an ended search whose trials have these scores, by number."""
    job = until_final(worker, installation.submit(search=SEARCH | search))
    for trial in job.trials.all():
        values = scores.get(trial.number, [0.1, 0.2])
        for execution, score in zip(trial.executions.order_by("number"), values, strict=False):
            trial.executions.filter(pk=execution.pk).update(score=score)
        job.trials.filter(pk=trial.pk).update(score=sum(values) / len(values))
    return job


def test_the_best_two_are_compared_with_an_interval(installation: Yard, worker: PretendWorker) -> None:
    job = scored(installation, worker, {3: [0.90, 0.91], 2: [0.70, 0.71]})
    search_answer = answer.answer_of_search(job)
    assert search_answer.over and search_answer.best and search_answer.next and search_answer.lead
    assert (search_answer.best.number, search_answer.next.number, search_answer.lead.verdict) == (
        3,
        2,
        "clear",
    )
    assert search_answer.scoring.text.startswith("highest val_accuracy on ")
    assert search_answer.scoring.text.endswith("validation rows; mean over 2 trainings")


def test_one_training_of_each_tells_nothing(installation: Yard, worker: PretendWorker) -> None:
    job = scored(installation, worker, {3: [0.9]}, executions_per_trial=1)
    search_answer = answer.answer_of_search(job)
    assert search_answer.lead is not None
    assert (search_answer.lead.verdict, search_answer.lead.trainings, search_answer.repeats) == (
        "unknown",
        [1, 1],
        5,
    )


def test_trainings_that_could_not_tell_the_best_two_apart_are_not_offered(
    installation: Yard, worker: PretendWorker
) -> None:
    job = scored(installation, worker, {3: [0.9, 0.92], 4: [0.92, 0.9]})
    search_answer = answer.answer_of_search(job)
    assert search_answer.lead is not None and (search_answer.lead.verdict, search_answer.lead.needed) == (
        "unclear",
        None,
    )
    assert search_answer.repeats is None


def test_trials_with_the_score_of_the_best_are_known(installation: Yard, worker: PretendWorker) -> None:
    job = scored(installation, worker, {2: [0.9, 0.8], 3: [0.8, 0.9], 4: [0.9, 0.8]})
    assert outcomes.trials_tied_with(job, 2) == [3, 4]
    same = job.trials.get(number=2)
    job.trials.filter(number=3).update(values=same.values, values_digest=same.values_digest)
    assert outcomes.trials_tied_with(job, 2) == [4], "the same values are not another configuration"


def test_trainings_of_the_same_values_by_hand_count_too(installation: Yard, worker: PretendWorker) -> None:
    job = scored(installation, worker, {3: [0.9, 0.92]})
    same = job.trials.get(number=3)
    twin = job.trials.get(number=4)
    job.trials.filter(pk=twin.pk).update(values=same.values, values_digest=same.values_digest)
    search_answer = answer.answer_of_search(job)
    assert search_answer.lead is not None and search_answer.lead.trainings == [4, 2]


def test_folds_are_compared_in_pairs(installation: Yard, worker: PretendWorker) -> None:
    evaluation = {"kind": "k_fold", "folds": 3}
    job = scored(
        installation,
        worker,
        {1: [0.9, 0.8, 0.7], 2: [0.88, 0.77, 0.69]},
        executions_per_trial=1,
        evaluation=evaluation,
    )
    search_answer = answer.answer_of_search(job)
    assert search_answer.lead is not None
    assert (search_answer.lead.method, search_answer.lead.trainings) == ("paired_folds", [3, 3])
    assert "held-out folds" in scoring.scoring_of_search(job).text


def test_the_best_two_are_trained_again_with_other_seeds_and_nothing_else(
    installation: Yard, worker: PretendWorker
) -> None:
    job = scored(installation, worker, {3: [0.9, 0.92], 1: [0.8, 0.9]})
    again = follow_up.repeat_best(job, by=installation.owner, executions=3)
    pipeline.advance_all()
    assert [t.values for t in again.trials.order_by("number")] == [
        job.trials.get(number=n).values for n in (3, 1)
    ]
    assert progress.progress_of_job(again).total == 6
    until_final(worker, again)
    assert (again.state, again.trials.count(), again.children.count()) == ("completed", 2, 0)
    seeds = {e.seed for t in job.trials.all() for e in t.executions.all()}
    assert not seeds & {e.seed for t in again.trials.all() for e in t.executions.all()}
    lead = answer.answer_of_search(again).lead
    assert lead is not None and lead.trainings == [3, 3]
    assert AuditEvent.objects.filter(action="job.repeat", target=f"job:{again.pk}").exists()


@pytest.mark.parametrize("executions", [0, 1, 101])
def test_a_number_of_executions_out_of_range_is_refused(
    installation: Yard, worker: PretendWorker, executions: int
) -> None:
    job = scored(installation, worker, {})
    with pytest.raises(BadInput, match=f"not {executions}"):
        follow_up.repeat_best(job, by=installation.owner, executions=executions)


def test_a_smaller_range_is_searched_from_the_trials_of_the_first(
    installation: Yard, worker: PretendWorker
) -> None:
    units = {**SEARCH["space"][0], "max": 512}
    job = scored(installation, worker, {}, algorithm="random", space=[units])
    job.trials.filter(number=1).update(score=0.99)
    assert answer.answer_of_search(job).smaller_range == ["units 16 to 256, instead of 16 to 512"]
    new_search = follow_up.queue_narrower_search(job, by=installation.owner)
    assert new_search.revision is not None and new_search.revision.spec.search is not None
    (narrower,) = new_search.revision.spec.search.space
    assert (narrower.min, narrower.max) == (16, 256)  # type: ignore[union-attr]
    assert new_search.experiment_id != job.experiment_id


def test_nothing_is_advised_about_what_the_best_trial_does_not_use(
    installation: Yard, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = [
        {"name": "activation", "kind": "choice", "values": ["relu", "tanh"]},
        {"name": "units", "kind": "int", "min": 16, "max": 512},
        {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.4},
    ]
    job = scored(installation, worker, {}, algorithm="random", max_trials=2, space=space)
    values = {"activation": "tanh", "units": 512, "dropout": 0.4}
    job.trials.filter(number=1).update(score=0.99, values=values)
    assert answer.answer_of_search(job).at_edge == ["units", "dropout"]
    unasked = (
        Unasked(name="activation", value="tanh", names=("units",)),
        Unasked(name="activation", value="relu", names=("dropout",)),
    )
    monkeypatch.setattr(dry_builds, "built_model", lambda _: SimpleNamespace(unused={}, unasked=unasked))
    advice = answer.answer_of_search(job)
    assert advice.at_edge == ["dropout"]
    assert "dropout 0.2 to 0.4, instead of 0 to 0.4" in advice.smaller_range
    assert not any("units" in change for change in advice.smaller_range)


def test_a_grid_has_no_smaller_range(installation: Yard, worker: PretendWorker) -> None:
    job = scored(installation, worker, {})
    assert answer.answer_of_search(job).smaller_range == []
    with pytest.raises(Conflict, match="already tried"):
        follow_up.queue_narrower_search(job, by=installation.owner)


def test_a_search_with_one_configuration_has_no_lead(installation: Yard, worker: PretendWorker) -> None:
    job = scored(installation, worker, {}, max_trials=1)
    search_answer = answer.answer_of_search(job)
    assert (search_answer.next, search_answer.lead, search_answer.repeats) == (None, None, None)
    with pytest.raises(StaleState, match="fewer than two"):
        follow_up.repeat_best(job, by=installation.owner)


def test_the_model_called_best_names_its_trial_and_measure(installation: Yard, worker: PretendWorker) -> None:
    job = installation.submit(search=SEARCH, after={"retrain": {"top": 2}})
    while job.children.count() < 2:
        turn(worker, job)
    schedule.place_jobs()
    first, second = worker.claim_all()
    worker.run(first, score=0.5)
    job.refresh_from_db()
    assert retrained_models.best_retrained(job) is None, "the other retraining may become better"
    worker.run(second, score=0.9)
    until_final(worker, job)
    chosen = retrained_models.best_retrained(job)
    assert chosen is not None
    assert (chosen.job, chosen.differs) == (second.job, True)
