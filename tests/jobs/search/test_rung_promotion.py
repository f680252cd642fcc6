"""Searches whose trials wait at rungs: waiting, promotion, pruning, and the end of the search."""

import time
from collections import Counter
from typing import Any

import pytest

from jobs import queue
from jobs.actions.runs import attempt_end, pipeline, schedule
from jobs.actions.search import suggest, trials
from jobs.messages import events as contract
from jobs.messages.suggest import SuggestRequest
from jobs.models import Attempt, Execution, Job, Trial, TrialDecision
from jobs.queries.runs import progress
from jobs.queries.search import outcomes
from jobs.states import Outcome
from tests.jobs.yard import PretendWorker, Yard, begun, ended
from tests.present import present
from workers.engine.search.suggest import suggest as suggested

SPACE = [{"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-1, "sampling": "log"}]
CLIMB: dict[str, Any] = {
    "algorithm": "hyperband",
    "objective": {"metric": "val_loss", "direction": "min"},
    "max_trials": 100,
    "space": SPACE,
}
FIT = {"epochs": 9, "batch_size": 64}


class Climber(PretendWorker):
    """A worker whose trials score their learning rate, less a bit for each epoch."""

    failing: frozenset[int] = frozenset()

    def run(self, attempt: Attempt, **_: Any) -> None:
        self.report(attempt, contract.Started(time=time.time()))
        for trial in attempt.trials.order_by("number"):
            self.climb(attempt, trial)
        attempt_end.finish(attempt.pk, Outcome.COMPLETED)

    def climb(self, attempt: Attempt, trial: Trial) -> None:
        """Report the events of a trial that trains to its rung's end."""
        if trial.number in self.failing:
            self.report(attempt, begun(trial), ended(trial, "out of luck"))
            return
        epochs = trial.epochs or FIT["epochs"]
        state: Any = "paused" if epochs < FIT["epochs"] else "completed"
        done = [
            contract.ExecutionDone(
                time=time.time(), trial=trial.number, execution=execution.number, state=state,
                score=trial.values["learning_rate"] + execution.number - epochs / 1000,
                best_epoch=epochs, epochs=epochs,
            )
            for execution in trial.executions.exclude(state="completed")
        ]  # fmt: skip
        self.report(
            attempt,
            begun(trial),
            *done,
            contract.TrialDone(time=time.time(), trial=trial.number, state=state),
        )


def answer(job: Job) -> bool:
    """Answer a request with the real algorithm; return whether there was one."""
    claimed = suggest.claim_request(job.pk)
    if claimed is None:
        return False
    suggest.add_suggestions(claimed, suggested(SuggestRequest.model_validate(claimed.request)))
    return True


def turn(worker: PretendWorker, job: Job) -> None:
    """Advance, answer, place and run once."""
    pipeline.advance_all()
    answer(job)
    schedule.place_jobs()
    for attempt in worker.claim_all():
        worker.run(attempt)
    pipeline.advance_all()
    job.refresh_from_db()


def climb(worker: PretendWorker, job: Job) -> Job:
    """Repeat turns until the job is final."""
    for _ in range(200):
        turn(worker, job)
        if job.state in ("completed", "failed", "stopped"):
            return job
    raise AssertionError(f"job is still {job.state}: {Counter(job.trials.values_list('state', flat=True))}")


@pytest.fixture
def climber(installation: Yard) -> Climber:
    return Climber(slots=4)


def at_first_rung(installation: Yard, climber: Climber, **search: Any) -> tuple[Job, Trial]:
    """Return a running search and its first trial, which waits while others run."""
    job = installation.submit(search=CLIMB | search, fit=FIT)
    pipeline.advance_all()
    answer(job)
    schedule.place_jobs()
    first, *_ = climber.claim_all()
    trial = first.trials.get()
    climber.run(first)
    trial.refresh_from_db()
    job.refresh_from_db()
    return job, trial


def test_hyperband_runs_its_brackets_and_records_each_decision(installation: Yard, climber: Climber) -> None:
    job = climb(climber, installation.submit(search=CLIMB, fit=FIT))
    assert job.state == "completed", job.error
    reached = Counter((t.bracket, t.epochs) for t in job.trials.all())
    # 9·1 3·3 1·9, 5·3 1·9, 3·9: the paper's brackets for R = 9 and η = 3, by where each trial ended
    assert reached == {(0, 1): 6, (0, 3): 2, (0, 9): 1, (1, 3): 4, (1, 9): 1, (2, 9): 3}
    assert Counter(job.trials.values_list("state", flat=True)) == {"pruned": 12, "completed": 5}
    assert all(len(t.rungs) == t.rung + 1 and t.rungs[-1] == t.score for t in job.trials.all())
    decisions = TrialDecision.objects.filter(trial__job=job, trial__bracket=0, rung=0)
    assert Counter(d.saw["promoted"] for d in decisions) == {True: 3, False: 6}
    assert all(d.saw["promoted"] == (d.value <= d.saw["cutoff"]) for d in decisions)
    trained = sum(Execution.objects.filter(trial__job=job).values_list("epochs", flat=True))
    assert progress.progress_of_job(job).total == trained == outcomes.search_of(job).epochs_planned(9)


def test_asha_ends_with_every_trial_decided(installation: Yard, climber: Climber) -> None:
    job = climb(
        climber, installation.submit(search={**CLIMB, "algorithm": "asha", "max_trials": 20}, fit=FIT)
    )
    assert job.state == "completed", job.error
    assert {t.state for t in job.trials.all()} == {"pruned", "completed"}
    assert job.trials.count() == 20


def test_a_search_too_short_for_its_top_rung_still_has_a_best_trial(
    installation: Yard, climber: Climber
) -> None:
    job = climb(climber, installation.submit(search={**CLIMB, "algorithm": "asha", "max_trials": 2}, fit=FIT))
    assert (job.state, {t.state for t in job.trials.all()}) == ("completed", {"pruned"})
    assert job.results_json["best_trial"]["score"] == min(present(t.score) for t in job.trials.all())


def test_a_waiting_trial_keeps_its_score_and_a_second_end_of_a_rung_replaces_the_first(
    installation: Yard, climber: Climber
) -> None:
    _, trial = at_first_rung(installation, climber, executions_per_trial=2)
    assert trial.waits_at_rung
    assert trial.score == pytest.approx(trial.values["learning_rate"] + 1.5 - 0.001)
    assert trial.rungs == [trial.score]
    assert trial.finished is not None
    assert {e.state for e in trial.executions.all()} == {"paused"}

    Trial.objects.filter(pk=trial.pk).update(state="stopped")
    trials.retry(trial, by=installation.owner)
    schedule.place_jobs()
    for attempt in climber.claim_all():
        climber.run(attempt)
    trial.refresh_from_db()
    assert trial.waits_at_rung
    assert trial.rungs == [trial.score]


def test_after_an_empty_answer_no_request_is_sent_until_a_trial_changes(
    installation: Yard, climber: Climber, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = installation.submit(search=CLIMB | {"max_trials": 4}, fit=FIT)  # one bracket of four, cut short
    pipeline.advance_all()
    assert answer(job)
    schedule.place_jobs()
    *others, last = climber.claim_all()
    for attempt in others:
        climber.run(attempt)
    asked: list[int] = []
    monkeypatch.setattr(queue, "ask_for_suggestions", lambda _pool, pk: asked.append(pk))
    for _ in range(3):
        pipeline.advance_all()
        answer(job)
        Job.objects.update(suggest_until=None)
    assert len(asked) == 1, "its empty answer holds"
    climber.run(last)
    pipeline.advance_all()
    assert len(asked) == 2, "the rung is complete"


def test_a_trial_retried_after_the_last_answer_is_still_promoted_or_pruned(
    installation: Yard, climber: Climber
) -> None:
    climber.failing = frozenset({2})
    job = installation.submit(search=CLIMB | {"max_trials": 4}, fit=FIT)
    while not Job.objects.get(pk=job.pk).payload_json.get("exhausted"):
        pipeline.advance_all()
        answer(job)
        schedule.place_jobs()
        for attempt in climber.claim_all():
            climber.run(attempt)
    climber.failing = frozenset()
    trials.retry(job.trials.get(number=2), by=installation.owner)
    assert climb(climber, job).state == "completed"
    assert job.trials.get(number=2).state in ("pruned", "completed")


def test_a_trial_that_ends_a_rung_interrupts_a_row_of_failures(installation: Yard, climber: Climber) -> None:
    climber.failing = frozenset({1, 3, 5, 7})
    job = climb(climber, installation.submit(search=CLIMB | {"max_consecutive_failures": 2}, fit=FIT))
    assert job.state == "completed"
    climber.failing = frozenset(range(100))
    job = climb(climber, installation.submit(search=CLIMB | {"max_consecutive_failures": 2}, fit=FIT))
    assert present(job.error)["code"] == "trials_keep_failing"


def test_a_runner_lost_at_a_rung_costs_a_restart(installation: Yard, climber: Climber) -> None:
    at_first_rung(installation, climber)
    schedule.place_jobs()
    attempt = Attempt.objects.filter(state="running").first()
    assert attempt is not None
    trial = attempt.trials.get()
    climber.report(attempt, begun(trial))
    attempt_end.finish(attempt.pk, Outcome.LOST, error={"code": "runner_killed", "message": "killed"})
    trial.refresh_from_db()
    assert (trial.state, trial.restarts, trial.rungs) == ("queued", 1, [])
