"""A user ends a search early: its trials stop, and the steps after it run with what there is."""

import time
from typing import Any

import pytest

from jobs.actions.runs import attempt_end, attempts, control, pipeline, schedule
from jobs.actions.search import search_changes, suggest, trials
from jobs.errors import Conflict, NotFound, StaleState
from jobs.messages import events as contract
from jobs.messages.suggest import Answer, Suggestion
from jobs.models import Attempt, AuditEvent, Job, User
from jobs.queries.runs import events as event_log
from jobs.queries.runs import jobs as job_queries
from jobs.queries.runs import progress
from jobs.queries.search import trials as trial_queries
from jobs.states import Desired, Outcome
from tests.jobs.yard import (
    SEARCH,
    PretendWorker,
    Yard,
    begun,
    placed_search,
    suggest_from_grid,
    turn,
    until_final,
)

AFTER = {"retrain": {"top": 1}, "quantize": {}}
WIDE = {"max_trials": 40, "space": [{"name": "units", "kind": "int", "min": 1, "max": 40}]}


def half_done(installation: Yard, worker: PretendWorker, **parts: Any) -> tuple[Job, Attempt, Attempt]:
    """Return a search with one completed trial and one that runs, and the attempts of both."""
    job = installation.submit(**({"search": SEARCH | WIDE, "after": AFTER} | parts))
    pipeline.advance_all()
    suggest_from_grid(job)
    schedule.place_jobs()
    first, second = worker.claim_all()
    worker.run(first)
    worker.report(second, contract.Started(time=time.time()), begun(second.trials.get()))
    job.refresh_from_db()
    return job, first, second


def test_a_finished_search_continues_with_its_steps(installation: Yard, worker: PretendWorker) -> None:
    job, _, second = half_done(installation, worker)
    control.finish(job, by=installation.owner)
    assert (job.state, job.desired) == ("running", "running")
    assert attempts.renew(worker.row.pk, [second.pk]) == {second.pk: Desired.STOPPED}
    attempt_end.finish(second.pk, Outcome.STOPPED)
    until_final(worker, job)
    assert job.state == "completed"
    assert [child.kind for child in job.children.order_by("pk")] == ["train", "quantize"]
    assert job.results_json["best_trial"]["number"] == 1
    assert list(job.trials.order_by("number").values_list("state", flat=True)) == ["completed", "stopped"]


def test_no_trial_is_created_or_placed_after_a_request_to_finish(
    installation: Yard, worker: PretendWorker
) -> None:
    job, _, _ = half_done(installation, worker)
    suggest_from_grid(job)
    assert job.trials.waiting().exists()
    claimed = suggest.SuggestionClaim(job.pk, _claimed(job), {}, "")
    control.finish(job, by=installation.owner)
    assert not job.trials.waiting().exists()
    assert suggest.claim_request(job.pk) is None
    suggest.add_suggestions(claimed, Answer(suggestions=(Suggestion(values={"units": 30}),)))
    assert schedule.place_jobs() == 0
    assert job.trials.unfinished().count() == 1


def _claimed(job: Job) -> int:
    """Let a worker hold the claim on the search's suggestions; return its fencing token."""
    Job.objects.filter(pk=job.pk).update(suggest_until=job.queued, suggest_fence=7)
    return 7


def test_a_trial_of_a_lost_worker_is_not_queued_again(installation: Yard, worker: PretendWorker) -> None:
    job, _, second = half_done(installation, worker)
    control.finish(job, by=installation.owner)
    attempt_end.finish(second.pk, Outcome.LOST)
    pipeline.advance_all()
    assert job.trials.get(number=2).state == "stopped"
    assert job.children.count() == 1


def test_a_paused_search_finishes_without_resuming_its_trials(
    installation: Yard, worker: PretendWorker
) -> None:
    job, _, second = half_done(installation, worker)
    control.pause(job, by=installation.owner)
    attempt_end.finish(second.pk, Outcome.PAUSED)
    pipeline.advance_all()
    job.refresh_from_db()
    assert job.state == "paused"
    control.finish(job, by=installation.owner)
    assert job.trials.get(number=2).state == "stopped"
    assert until_final(worker, job).state == "completed"


def test_trials_that_wait_at_a_rung_count_with_their_scores(
    installation: Yard, worker: PretendWorker
) -> None:
    job, _, second = half_done(installation, worker)
    trial = job.trials.get(number=2)
    trial.executions.update(state="paused", score=0.99)
    job.trials.filter(pk=trial.pk).update(state="paused", score=0.99, rungs=[0.99], attempt=0)
    attempt_end.finish(second.pk, Outcome.COMPLETED)
    job.trials.filter(number=1).update(state="stopped")
    control.finish(job, by=installation.owner)
    assert trial_queries.best_number(job) == 2
    assert job.children.get().payload.hyperparameters() == trial.values


def test_a_finished_search_is_the_same_after_a_crash_between_any_two_writes(
    installation: Yard, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, _, second = half_done(installation, worker)

    def dies(_: Job) -> None:
        raise SystemExit

    with monkeypatch.context() as broken, pytest.raises(SystemExit):
        broken.setattr(pipeline, "advance", dies)
        control.finish(job, by=installation.owner)
    job.refresh_from_db()
    assert not job.payload.finishing, "half of the request was written"
    assert not AuditEvent.objects.filter(action="job.finish").exists()

    control.finish(job, by=installation.owner)
    attempt_end.finish(second.pk, Outcome.STOPPED)
    with monkeypatch.context() as broken, pytest.raises(SystemExit):
        broken.setattr("jobs.actions.runs.submit.create_step", lambda *_, **__: dies(job))
        pipeline.advance(job)
    assert job.children.count() == 0
    pipeline.advance_all()  # another scheduler
    assert job.children.count() == 1


def test_the_request_is_in_the_audit_log_and_the_events(installation: Yard, worker: PretendWorker) -> None:
    job, _, _ = half_done(installation, worker)
    before = job.event_seq
    control.finish(job, by=installation.owner)
    assert AuditEvent.objects.filter(action="job.finish", target=f"job:{job.pk}").count() == 1
    events = event_log.read_events(job.pk, after=before, limit=10).items
    assert [(e["type"], e["state"], e["reason"]) for e in events] == [("state", "running", "finishing")]
    assert job_queries.job_out(job).finishing


def test_the_progress_of_a_finished_search_counts_only_what_ran(
    installation: Yard, worker: PretendWorker
) -> None:
    job, _, second = half_done(installation, worker, after={})
    assert progress.progress_of_job(job).total == 80
    control.finish(job, by=installation.owner)
    attempt_end.finish(second.pk, Outcome.STOPPED)
    until_final(worker, job)
    assert progress.progress_of_job(job)[:4] == (2, 2, "executions", 1.0)


def test_retrying_a_finished_search_runs_only_its_failed_steps(
    installation: Yard, worker: PretendWorker
) -> None:
    job, _, second = half_done(installation, worker)
    control.finish(job, by=installation.owner)
    attempt_end.finish(second.pk, Outcome.STOPPED)
    pipeline.advance_all()
    schedule.place_jobs()
    (training,) = worker.claim_all()
    attempt_end.finish(training.pk, Outcome.FAILED, error={"code": "nan_loss", "message": "NaN"})
    for _ in range(2):
        turn(worker, job)
    assert job.state == "failed"
    control.retry(job, by=installation.owner)
    assert until_final(worker, job).state == "completed"
    assert job.trials.get(number=2).state == "stopped"


def test_a_search_without_a_score_is_not_finished(installation: Yard, worker: PretendWorker) -> None:
    job, _ = placed_search(installation, worker)
    with pytest.raises(StaleState, match="has a score yet"):
        control.finish(job, by=installation.owner)


def test_a_search_is_finished_once_and_accepts_no_trials_afterwards(
    installation: Yard, worker: PretendWorker
) -> None:
    job, _, second = half_done(installation, worker)
    control.finish(job, by=installation.owner)
    with pytest.raises(StaleState, match="already in progress"):
        control.finish(job, by=installation.owner)
    with pytest.raises(StaleState, match="being finished"):
        trials.queue_by_hand(job, {"units": 3}, by=installation.owner)
    with pytest.raises(StaleState, match="no more trials"):
        search_changes.preview_change(job, {"max_trials": 50})
    attempt_end.finish(second.pk, Outcome.STOPPED)
    until_final(worker, job)
    with pytest.raises(StaleState, match="is completed"):
        control.finish(job, by=installation.owner)


@pytest.mark.parametrize("order", [control.stop, control.kill])
def test_a_search_that_stops_is_not_finished(installation: Yard, worker: PretendWorker, order: Any) -> None:
    job, _, _ = half_done(installation, worker)
    order(job, by=installation.owner)
    with pytest.raises(StaleState, match="it cannot be finished now"):
        control.finish(job, by=installation.owner)


def test_a_search_whose_steps_run_is_not_finished(installation: Yard, worker: PretendWorker) -> None:
    job = installation.submit(search=SEARCH, after=AFTER)
    while not job.children.exists():
        turn(worker, job)
    with pytest.raises(StaleState, match="already run"):
        control.finish(job, by=installation.owner)


def test_a_finishing_search_can_still_be_stopped(installation: Yard, worker: PretendWorker) -> None:
    job, _, second = half_done(installation, worker)
    control.finish(job, by=installation.owner)
    control.stop(job, by=installation.owner)
    attempt_end.finish(second.pk, Outcome.STOPPED)
    assert until_final(worker, job).state == "stopped"
    assert job.children.count() == 0


def test_only_searches_can_be_finished_and_only_by_those_who_may_write(
    installation: Yard, worker: PretendWorker
) -> None:
    with pytest.raises(Conflict, match="not a search"):
        control.finish(installation.submit(), by=installation.owner)
    job, _, _ = half_done(installation, worker)
    with pytest.raises(NotFound):
        control.finish(job, by=User.objects.create(username="passer-by"))
