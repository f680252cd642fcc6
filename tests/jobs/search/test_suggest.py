"""The effects of an algorithm's answer: new trials, duplicates, promotions and pruned trials."""

from typing import Any

import pytest

from jobs.actions.runs import control, pipeline
from jobs.actions.search import suggest
from jobs.actions.transition import move_trial
from jobs.messages.suggest import Answer, Dropped, Suggestion, SuggestRequest
from jobs.models import Job, Trial, TrialDecision
from jobs.queries.search import outcomes
from jobs.states import TrialState
from tests.factories import make_attempt, make_job
from tests.jobs.yard import SEARCH, PretendWorker, Yard, placed_search, until_final

CLIMBING = {**SEARCH, "algorithm": "asha", "max_trials": 4}


def ticket_of(job: Job) -> suggest.SuggestionClaim:
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None
    return claimed


def answer(job: Job, *suggestions: Suggestion, **more: Any) -> SuggestRequest:
    """Answer the search's request and return the request."""
    Job.objects.filter(pk=job.pk).update(suggest_until=None)
    claimed = ticket_of(job)
    suggest.add_suggestions(claimed, Answer(suggestions=suggestions, **more))
    return SuggestRequest.model_validate(claimed.request)


def waiting_at_a_rung(installation: Yard) -> tuple[Job, Trial]:
    """Return a search and its trial, which waits at the end of the first rung."""
    job = installation.submit(search=CLIMBING)
    pipeline.advance_all()
    answer(job, Suggestion(values={"units": 16}, epochs=1))
    trial = job.trials.get()
    trial.executions.update(state=TrialState.PAUSED, score=0.5)
    move_trial(trial, TrialState.RUNNING)
    return job, move_trial(trial, TrialState.PAUSED, rungs=[0.5], score=0.5)


def test_a_promoted_trial_continues_under_its_number(installation: Yard, worker: PretendWorker) -> None:
    job, trial = waiting_at_a_rung(installation)
    saw = {"rung": 0, "value": 0.5, "cutoff": 0.5, "of": 3}
    asked = answer(job, Suggestion(values={"units": 16}, promotes=1, rung=1, epochs=3, saw=saw))
    (row,) = asked.trials
    assert row.waits() and (row.epochs, row.rungs, asked.epochs) == (1, (0.5,), 3)
    trial.refresh_from_db()
    assert (trial.state, trial.rung, trial.epochs, trial.number) == ("queued", 1, 3, 1)
    assert set(trial.executions.values_list("state", flat=True)) == {"queued"}
    decision = TrialDecision.objects.get()
    assert (decision.rule, decision.rung, decision.epoch, decision.value) == ("asha", 0, 1, 0.5)
    assert decision.saw == {**saw, "promoted": True}


def test_a_dropped_trial_is_pruned_with_the_numbers_that_decided(
    installation: Yard, worker: PretendWorker
) -> None:
    job, trial = waiting_at_a_rung(installation)
    answer(job, dropped=(Dropped(trial=1, saw={"cutoff": 0.9, "of": 3}),), exhausted=True)
    trial.refresh_from_db()
    job.refresh_from_db()
    assert trial.state == "pruned" and trial.finished is not None
    assert TrialDecision.objects.get(trial=trial).saw == {"cutoff": 0.9, "of": 3, "promoted": False}
    assert suggest.claim_request(job.pk) is None, "no further suggestion is needed"


def test_a_trial_stopped_while_the_answer_was_computed_stays_stopped(
    installation: Yard, worker: PretendWorker
) -> None:
    job, trial = waiting_at_a_rung(installation)
    claimed = ticket_of(job)
    move_trial(trial, TrialState.STOPPED)
    promoted = Suggestion(values={"units": 16}, promotes=1, rung=1, epochs=3)
    suggest.add_suggestions(claimed, Answer(suggestions=(promoted,), dropped=(Dropped(trial=1),)))
    trial.refresh_from_db()
    assert trial.state == "stopped" and not TrialDecision.objects.exists()


def test_a_search_that_is_resumed_leaves_trials_at_their_rungs(
    installation: Yard, worker: PretendWorker
) -> None:
    job, trial = waiting_at_a_rung(installation)
    Job.objects.filter(pk=job.pk).update(state="running")
    control.pause(job, by=installation.owner)
    pipeline.advance_all()
    control.resume(Job.objects.get(pk=job.pk), by=installation.owner)
    trial.refresh_from_db()
    assert trial.state == "paused"


def test_a_search_with_rungs_requests_suggestions_after_its_last_trial_was_created(
    installation: Yard, worker: PretendWorker
) -> None:
    job, _ = waiting_at_a_rung(installation)
    for _ in range(3):
        answer(job, Suggestion(values={"units": 16}, epochs=1))
        for trial in job.trials.filter(state="queued"):
            move_trial(trial, TrialState.STOPPED)
    assert len(answer(job, exhausted=True).trials) == 4


def test_a_repeated_configuration_is_answered_without_training(
    installation: Yard, worker: PretendWorker
) -> None:
    job, attempts = placed_search(installation, worker)
    worker.run(attempts[0])
    first = job.trials.get(number=1)
    answer(job, Suggestion(values=first.values, answered_by=1))
    copy = job.trials.get(number=3)
    assert (copy.state, copy.score, copy.std, copy.answered_by) == (
        "completed",
        first.score,
        first.std,
        first,
    )
    assert copy.finished is not None
    columns = ("number", "state", "score", "best_epoch", "epochs")
    rows = [list(trial.executions.order_by("number").values(*columns)) for trial in (copy, first)]
    assert rows[0] == rows[1]
    assert outcomes.best_trials(job, limit=1).get() == first
    assert not outcomes.best_trials(job, limit=0).exists()
    copy_id = copy.pk
    job.delete()
    assert not Trial.objects.filter(pk=copy_id).exists()


@pytest.mark.parametrize(("number", "units"), [(1, 64), (2, 32)])
def test_an_answer_that_does_not_fit_changes_nothing(
    installation: Yard, worker: PretendWorker, number: int, units: int
) -> None:
    job, attempts = placed_search(installation, worker)
    worker.run(attempts[0])
    with pytest.raises(ValueError, match="cannot be used"):
        answer(job, Suggestion(values={"units": units}, answered_by=number))
    assert job.trials.count() == 2


def test_a_warm_start_leaves_out_trials_that_do_not_fit_the_space(
    installation: Yard, worker: PretendWorker
) -> None:
    done = until_final(worker, installation.submit(search=SEARCH))
    narrow = [{"name": "units", "kind": "int", "min": 16, "max": 32, "step": 16}]
    job = installation.submit(search={**SEARCH, "algorithm": "tpe", "warm_start": done.pk, "space": narrow})
    pipeline.advance_all()
    asked = SuggestRequest.model_validate(ticket_of(job).request)
    assert {row.values["units"] for row in asked.trials} == {16, 32}
    assert all(row.source == "earlier" and row.score is not None for row in asked.trials)


def test_of_several_objectives_the_best_are_those_that_nothing_beats(installation: Yard) -> None:
    objectives = [{"metric": "val_accuracy", "direction": "max"}, {"metric": "val_loss", "direction": "min"}]
    body = {**SEARCH, "objectives": objectives, "executions_per_trial": 1}
    job = installation.submit(search=body)
    figures = {1: (0.9, 0.5), 2: (0.8, 0.6), 3: (0.7, 0.1), 4: (0.95, 0.9)}
    for number, (accuracy, loss) in figures.items():
        new_trial = suggest.make_trial(job, {"units": 16 * number}, source="algorithm")
        metrics = {"val_accuracy": accuracy, "val_loss": loss}
        new_trial.executions.update(state="completed", metrics=metrics, score=accuracy)
        Trial.objects.filter(pk=new_trial.pk).update(state="completed", score=accuracy)
    assert [trial.number for trial in outcomes.best_trials(job, limit=4)] == [4, 1, 3, 2]


def trials_asked(job: Job) -> int:
    """Return how many trials a search asks for now."""
    Job.objects.filter(pk=job.pk).update(suggest_until=None)
    claimed = suggest.claim_request(job.pk)
    return SuggestRequest.model_validate(claimed.request).count if claimed is not None else 0


def occupy(installation: Yard, worker: PretendWorker) -> None:
    """Let another job's attempt hold one of the worker's slots."""
    other = make_job(by=installation.owner, kind="train", state="running", project=installation.project)
    make_attempt(other, worker.row)


def test_a_worker_that_is_too_small_for_a_trial_does_not_count(installation: Yard) -> None:
    job = installation.submit(search=SEARCH, resources={"slots": 2})
    small = PretendWorker(slots=1, name="small")
    occupy(installation, small)
    pipeline.advance_all()
    assert trials_asked(job) == 1, "one trial waits and shows why"
    large = PretendWorker(slots=4, name="large")
    assert trials_asked(job) == 2, "what runs on the small worker takes nothing from the large one"
    occupy(installation, large)
    assert trials_asked(job) == 1


def test_free_slots_of_several_workers_do_not_add_up_to_a_trial(installation: Yard) -> None:
    job = installation.submit(search=SEARCH, resources={"slots": 2})
    for name in ("one", "two", "three"):
        occupy(installation, PretendWorker(slots=2, name=name))
    PretendWorker(slots=2, name="free")
    pipeline.advance_all()
    assert trials_asked(job) == 1
