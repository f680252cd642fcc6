"""One attempt that holds several trials."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from jobs.actions.runs import attempt_end, pipeline, schedule, tasks
from jobs.actions.search import trials
from jobs.messages import events as contract
from jobs.messages.training import TrialTask
from jobs.models import Attempt, Job, MetricSeries, Trial, User
from jobs.queries.runs import events as event_log
from jobs.queries.runs import jobs as job_queries
from jobs.queries.runs import open_attempts
from jobs.states import Outcome
from jobs.store import LocalStore
from tests.jobs.search.test_trial_continues import keep
from tests.jobs.yard import SEARCH, PretendWorker, Yard, begun, ended, placed_search, suggest_from_grid
from tests.present import present

WIDE: dict[str, Any] = SEARCH | {
    "max_trials": 40,
    "executions_per_trial": 1,
    "space": [{"name": "units", "kind": "int", "min": 1, "max": 40}],
}


@pytest.fixture
def solo(installation: Yard) -> PretendWorker:
    return PretendWorker(slots=1)


def batch_of(installation: Yard, worker: PretendWorker, *, seconds: float = 0.5, **search: Any) -> Attempt:
    """Return a claimed attempt with several trials: the first has shown how long one takes."""
    job, (first,) = placed_search(installation, worker, **(WIDE | search))
    (trial,) = first.trials.all()
    worker.report(first, contract.Started(time=time.time()), begun(trial, ago=seconds), ended(trial))
    attempt_end.finish(first.pk, Outcome.COMPLETED)
    return next_batch(job, worker)


def next_batch(job: Job, worker: PretendWorker) -> Attempt:
    pipeline.advance_all()
    suggest_from_grid(job)
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    return attempt


def states(attempt: Attempt) -> list[str]:
    return [trial.state for trial in attempt.trials.order_by("number")]


def log_of(job: Job) -> list[str]:
    return [
        e["line"] for e in event_log.read_events(job.pk, after=0, limit=10_000).items if e["type"] == "log"
    ]


def test_an_attempt_holds_one_trial_until_the_duration_of_a_trial_is_known(
    installation: Yard, solo: PretendWorker
) -> None:
    _, (first,) = placed_search(installation, solo, **WIDE)
    assert first.trials.count() == 1


def test_trials_released_during_placement_are_not_overtaken(
    installation: Yard, solo: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = batch_of(installation, solo, parallel_trials=1)
    held = list(attempt.trials.order_by("number"))
    pipeline.advance_all()
    suggest_from_grid(attempt.job)
    assert attempt.job.trials.waiting().exists()
    look = open_attempts.read_open_attempts

    def lost_afterwards() -> list[open_attempts.OpenAttempt]:
        taken = look()
        attempt_end.finish(attempt.pk, Outcome.LOST)
        return taken

    monkeypatch.setattr(open_attempts, "read_open_attempts", lost_afterwards)
    assert schedule.place_jobs() == 0
    monkeypatch.setattr(open_attempts, "read_open_attempts", look)
    schedule.place_jobs()
    (again,) = solo.claim_all()
    assert again.trials.order_by("number").first() == held[0]


def test_an_attempt_holds_trials_for_three_seconds_but_no_more_than_its_share(installation: Yard) -> None:
    worker = PretendWorker(slots=1)
    assert batch_of(installation, worker, seconds=0.5).trials.count() in (5, 6)
    PretendWorker(slots=3, name="other")
    schedule.place_jobs()
    sizes = [a.trials.count() for a in Attempt.objects.exclude(state="ended").order_by("pk")[1:]]
    assert sizes == [], "nothing waits"
    pipeline.advance_all()
    suggest_from_grid(Job.objects.get())
    schedule.place_jobs()
    sizes = [a.trials.count() for a in Attempt.objects.exclude(state="ended").order_by("pk")[1:]]
    assert len(sizes) == 3, "the work is spread over all free slots"


def test_a_batch_runs_one_trial_at_once_so_a_limit_counts_attempts(installation: Yard) -> None:
    worker = PretendWorker(slots=4)
    attempt = batch_of(installation, worker, parallel_trials=1)
    solo, other = attempt.trials.order_by("number")[:2]
    worker.report(attempt, begun(solo))
    assert attempt.job.trials.filter(state="running").get() == solo
    pipeline.advance_all()
    suggest_from_grid(attempt.job)
    assert schedule.place_jobs() == 0
    other.refresh_from_db()
    assert (other.state, other.started, other.attempt) == ("queued", None, attempt.number)


def test_each_trial_of_a_batch_has_its_own_start_and_end_time(
    installation: Yard, solo: PretendWorker
) -> None:
    attempt = batch_of(installation, solo)
    first, second = attempt.trials.order_by("number")[:2]
    now = time.time()
    batch: list[contract.RunnerEvent] = [
        contract.TrialBegun(time=now - 9, trial=first.number),
        contract.TrialDone(time=now - 6, trial=first.number, state="completed"),
        contract.TrialBegun(time=now - 6, trial=second.number),
        contract.TrialDone(time=now - 1, trial=second.number, state="completed"),
    ]
    solo.report(attempt, *batch)
    rows = attempt.trials.filter(finished__isnull=False).order_by("number")
    assert [round((present(t.finished) - present(t.started)).total_seconds()) for t in rows] == [3, 5]


def test_an_event_of_a_trial_that_the_attempt_does_not_hold_is_not_written(
    installation: Yard, solo: PretendWorker
) -> None:
    attempt = batch_of(installation, solo)
    (first,) = attempt.job.trials.filter(number=1)
    before = Trial.objects.get(pk=first.pk).finished
    point = ("loss", 1.0, 0.5, 1.0)
    batch: list[contract.RunnerEvent] = [
        contract.TrialDone(time=time.time(), trial=first.number, state="pruned"),
        contract.Metric(time=time.time(), trial=77, execution=1, points=(point,)),
    ]
    solo.report(attempt, *batch)
    first.refresh_from_db()
    assert (first.state, first.finished) == ("completed", before)
    assert not MetricSeries.objects.exists()
    complaints = [line for line in log_of(attempt.job) if "does not hold" in line]
    assert [line.split(",")[0] for line in complaints] == [
        "an event of type trial_done names trial 1",
        "an event of type metric names trial 77",
    ]


def test_a_line_that_arrives_after_its_trial_was_queued_again_keeps_its_text_and_trial(
    installation: Yard, solo: PretendWorker
) -> None:
    attempt = batch_of(installation, solo)
    at = attempt.trials.order_by("number")[0]
    solo.report(attempt, begun(at), ended(at))
    Trial.objects.filter(pk=at.pk).update(state="queued", attempt=0)
    solo.report(attempt, contract.Log(time=time.time(), trial=at.number, line="the last words"))
    last = event_log.read_events(attempt.job_id, after=0, limit=10_000).items[-1]
    assert (last["line"], last["trial"]) == ("the last words", at.number)


def test_a_task_names_only_the_trials_still_open(
    installation: Yard, solo: PretendWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalStore, "path", lambda _store, digest: tmp_path / digest)
    attempt = batch_of(installation, solo)
    Trial.objects.filter(pk=attempt.trials.order_by("number")[0].pk).update(state="stopped")
    built = tasks.task_for(attempt.pk, folder=tmp_path, threads=1)
    assert isinstance(built, TrialTask)
    assert [plan.number for plan in built.trials] == [t.number for t in attempt.trials.order_by("number")[1:]]
    assert built.trials[0].spec.model.args["units"] == built.trials[0].values["units"]


def test_attempts_are_shown_with_their_trials(installation: Yard, solo: PretendWorker) -> None:
    attempt = batch_of(installation, solo)
    rows = [
        job_queries.attempt_out(row)
        for row in job_queries.attempts_with_trials(attempt.job).order_by("number")
    ]
    assert [len(row.trials) for row in rows] == [1, attempt.trials.count()]


def test_recording_costs_few_statements_a_trial(
    installation: Yard, solo: PretendWorker, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    attempt = batch_of(installation, solo, seconds=0.1)
    trials = list(attempt.trials.order_by("number"))
    assert len(trials) >= 20
    batch = [event for trial in trials for event in whole(trial)]
    with django_assert_max_num_queries(12 + 5 * len(trials)):
        solo.report(attempt, *batch)
    assert set(states(attempt)) == {"completed"}
    assert MetricSeries.objects.count() == 4 * len(trials)


def whole(trial: Trial) -> Iterator[contract.RunnerEvent]:
    """Yield the events for a trial with one epoch."""
    about: dict[str, Any] = {"time": time.time(), "trial": trial.number}
    training: dict[str, Any] = about | {"execution": 1}
    yield contract.TrialBegun(**about)
    yield contract.ExecutionDone(**training, state="running")
    names = ("loss", "accuracy", "val_loss", "val_accuracy")
    yield contract.Metric(**training, points=tuple((name, 1.0, 0.5, about["time"]) for name in names))
    folder = f"job/trial-{trial.number}"
    yield contract.CheckpointCommitted(**training, folder=folder, step=1, epoch=1, manifest="0" * 64, bytes=9)
    yield contract.ExecutionDone(**training, state="completed", score=0.5, best_epoch=1, epochs=1)
    yield contract.TrialDone(**about, state="completed")


def retried(trial: Trial, by: User) -> None:
    trials.retry(trial, by=by)


def continued(trial: Trial, by: User) -> None:
    keep(trial, 1)
    trials.continue_training(trial, 10, by=by)


@pytest.mark.parametrize(("error", "queue_again"), [("out of luck", retried), ("", continued)])
def test_a_trial_that_is_queued_again_is_released_by_its_earlier_attempt(
    error: str, queue_again: Callable[[Trial, User], None], installation: Yard, solo: PretendWorker
) -> None:
    attempt = batch_of(installation, solo)
    first, *rest = attempt.trials.order_by("number")
    solo.report(attempt, begun(first), ended(first, error))
    queue_again(first, installation.owner)
    assert attempt.job.trials.waiting().get() == first, "it waits for any slot"
    late = contract.ExecutionDone(
        time=time.time(), trial=first.number, execution=1, state="completed", score=0.1, epochs=3
    )
    solo.report(attempt, late)
    assert first.executions.get().state == "queued", "its late events are ignored"
    for trial in rest:
        solo.run_trial(attempt, trial)
    attempt_end.finish(attempt.pk, Outcome.COMPLETED)
    first.refresh_from_db()
    assert (first.state, first.error, first.started) == ("queued", None, None)
    again = next_batch(attempt.job, solo)
    solo.run(again)
    first.refresh_from_db()
    assert (first.state, first.attempt) == ("completed", again.number)
