"""A training or script ends when it has run for as long as its limit allows."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.runs import attempt_end, attempts, control, pipeline, schedule, time_limits
from jobs.errors import Conflict
from jobs.models import Attempt, Job
from jobs.queries.runs import jobs
from jobs.states import Desired, Outcome
from tests.jobs.yard import SEARCH, PretendWorker, Yard, turn


def started(installation: Yard, worker: PretendWorker, **resources: Any) -> tuple[Job, Attempt]:
    job = installation.submit(resources=resources)
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    return job, attempt


def let_run(attempt: Attempt, minutes: float) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(claimed=timezone.now() - timedelta(minutes=minutes))


def desired(worker: PretendWorker, attempt: Attempt) -> Desired:
    return attempts.renew(worker.row.pk, [attempt.pk])[attempt.pk]


def test_a_training_over_its_limit_writes_a_checkpoint_and_stops_with_that_reason(
    installation: Yard, worker: PretendWorker
) -> None:
    job, attempt = started(installation, worker, max_minutes=10)
    let_run(attempt, 9)
    assert time_limits.end_overdue() == 0
    assert desired(worker, attempt) is Desired.RUNNING
    let_run(attempt, 11)
    assert time_limits.end_overdue() == 1
    assert time_limits.end_overdue() == 0
    # The request that makes a runner write a checkpoint.
    assert desired(worker, attempt) is Desired.STOPPED
    attempt_end.finish(attempt.pk, Outcome.STOPPED)
    pipeline.advance_all()
    job.refresh_from_db()
    out = jobs.job_out(job)
    assert out.state == "stopped"
    assert out.error is not None
    assert out.error["code"] == "max_minutes"
    assert out.error["message"].startswith("It has run for 10 minutes, its limit resources.max_minutes.")


def test_time_of_earlier_attempts_counts_and_waiting_does_not(
    installation: Yard, worker: PretendWorker
) -> None:
    job, first = started(installation, worker, max_minutes=10)
    Job.objects.filter(pk=job.pk).update(started=timezone.now() - timedelta(hours=2))
    let_run(first, 6)
    attempt_end.finish(first.pk, Outcome.LOST)
    # It then waited for an hour.
    hour = timedelta(hours=1)
    row = Attempt.objects.get(pk=first.pk)
    assert row.claimed is not None
    assert row.ended is not None
    Attempt.objects.filter(pk=first.pk).update(claimed=row.claimed - hour, ended=row.ended - hour)
    schedule.place_jobs()
    (second,) = worker.claim_all()
    let_run(second, 3)
    assert time_limits.end_overdue() == 0
    let_run(second, 5)
    assert time_limits.end_overdue() == 1


def test_a_retry_begins_with_new_minutes(installation: Yard, worker: PretendWorker) -> None:
    job, attempt = started(installation, worker, max_minutes=10)
    let_run(attempt, 11)
    time_limits.end_overdue()
    attempt_end.finish(attempt.pk, Outcome.STOPPED)
    pipeline.advance_all()
    job.refresh_from_db()
    retried = control.retry(job, by=installation.owner)
    assert retried.error is None
    schedule.place_jobs()
    (again,) = worker.claim_all()
    Job.objects.filter(pk=job.pk).update(started=timezone.now())
    let_run(again, 5)
    assert time_limits.end_overdue() == 0
    assert desired(worker, again) is Desired.RUNNING


def test_a_run_that_ends_by_itself_while_it_stops_keeps_its_result_and_the_reason(
    installation: Yard, worker: PretendWorker
) -> None:
    job, attempt = started(installation, worker, max_minutes=10)
    Job.objects.filter(pk=job.pk).update(state="running")
    let_run(attempt, 11)
    time_limits.end_overdue()
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={"metrics": {"test": {"loss": 1.0}}})
    job.refresh_from_db()
    assert (job.state, (job.error or {})["code"]) == ("stopped", "max_minutes")
    assert job.results_json["metrics"]


def test_a_limit_that_was_reached_when_the_worker_died_stops_the_job(
    installation: Yard, worker: PretendWorker
) -> None:
    job, attempt = started(installation, worker, max_minutes=10)
    let_run(attempt, 11)
    time_limits.end_overdue()
    attempt_end.finish(attempt.pk, Outcome.LOST, error={"code": "lease_expired", "message": "lost"})
    job.refresh_from_db()
    assert (job.state, (job.error or {})["code"]) == ("stopped", "max_minutes")


def test_a_waiting_job_gets_a_limit_and_a_search_does_not(installation: Yard) -> None:
    job, search = installation.submit(), installation.submit(search=SEARCH)
    assert control.change(job, max_minutes=5, by=installation.owner).max_minutes == 5
    with pytest.raises(Conflict, match="is a search; change its"):
        control.change(search, max_minutes=5, by=installation.owner)


def test_a_user_who_stops_a_job_first_is_not_overruled(installation: Yard, worker: PretendWorker) -> None:
    job, attempt = started(installation, worker, max_minutes=10)
    let_run(attempt, 11)
    control.stop(job, by=installation.owner)
    assert time_limits.end_overdue() == 0
    job.refresh_from_db()
    assert job.error is None


def test_a_retraining_after_a_search_has_the_limit_and_the_search_has_none(installation: Yard) -> None:
    job = installation.submit(search=SEARCH, resources={"max_minutes": 7}, after={"retrain": {"top": 1}})
    worker = PretendWorker(slots=4)
    for _ in range(4):
        turn(worker, job)
    assert job.max_minutes is None
    assert {child.max_minutes for child in job.children.filter(kind="train")} == {7.0}
