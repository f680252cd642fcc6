from typing import Any
from unittest.mock import Mock

import pytest

from jobs import clock
from jobs.actions.data import profiles
from jobs.actions.people import quotas
from jobs.actions.runs import attempt_end, attempts, control, schedule, workers
from jobs.errors import QuotaReached, StaleFence
from jobs.messages import events as contract
from jobs.models import Attempt, DatasetVersion, EventChunk, Job, MetricSeries, Project, Worker
from jobs.queries.runs.codec import unpack_events
from jobs.queries.storage import disk_use
from jobs.states import Outcome
from tests.jobs.yard import PretendWorker, Yard
from tests.present import present


@pytest.fixture
def job(installation: Yard) -> Job:
    return installation.submit()


def placed(worker: PretendWorker) -> Attempt:
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    return attempt


def all_events(job: Job) -> list[dict[str, Any]]:
    return [
        e
        for chunk in EventChunk.objects.filter(root=job).order_by("first")
        for e in unpack_events(chunk.data)
    ]


def expire(attempt: Attempt) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=clock.seconds_from_now(-1))


def test_an_output_must_fit_into_the_disk_quota_of_its_project(job: Job, worker: PretendWorker) -> None:
    attempt = placed(worker)
    Project.objects.update(max_bytes=disk_use.bytes_of_project(present(job.project_id)) + 100)
    disk_use.forget_recent_bytes()
    quotas.require_room_for_output(attempt.pk, 100)
    with pytest.raises(QuotaReached, match="needs 101 bytes more"):
        quotas.require_room_for_output(attempt.pk, 101)


def test_only_one_worker_can_claim_an_attempt(job: Job, worker: PretendWorker) -> None:
    schedule.place_jobs()
    (offered,) = attempts.assigned_to(worker.row.pk)
    assert attempts.claim(offered.pk, worker_id=worker.row.pk) is not None
    assert attempts.claim(offered.pk, worker_id=worker.row.pk) is None
    assert attempts.claim(offered.pk, worker_id=worker.row.pk + 1) is None


def test_a_renewal_returns_desired_states_and_omits_ended_attempts(
    job: Job, installation: Yard, worker: PretendWorker
) -> None:
    attempt = placed(worker)
    assert attempts.renew(worker.row.pk, [attempt.pk]) == {attempt.pk: "running"}
    control.kill(job, by=installation.owner)
    assert attempts.renew(worker.row.pk, [attempt.pk]) == {attempt.pk: "killed"}
    attempt_end.finish(attempt.pk, Outcome.KILLED)
    assert attempts.renew(worker.row.pk, [attempt.pk]) == {}
    job.refresh_from_db()
    assert job.state == "stopped"


def test_a_worker_that_shuts_down_gets_nothing_and_keeps_what_it_runs(
    job: Job, installation: Yard, worker: PretendWorker
) -> None:
    schedule.place_jobs()
    (offered,) = attempts.assigned_to(worker.row.pk)
    attempt_end.decline_assigned(worker.row.pk)
    assert attempts.assigned_to(worker.row.pk) == []
    job.refresh_from_db()
    assert (job.state, job.restarts, Attempt.objects.get(pk=offered.pk).outcome) == ("retrying", 0, "lost")
    schedule.place_jobs()
    assert Attempt.objects.count() == 1, "its own attempt does not come back"
    workers.enable(Worker.objects.get(pk=worker.row.pk), by=installation.owner)
    running = placed(worker)
    attempt_end.decline_assigned(worker.row.pk)
    assert attempts.renew(worker.row.pk, [running.pk]) == {running.pk: "running"}


def test_events_are_numbered_without_gap_and_carry_their_attempt(job: Job, worker: PretendWorker) -> None:
    attempt = placed(worker)
    worker.report(attempt, contract.Started(time=1.0), contract.Log(time=2.0, line="hello"))
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={})
    events = all_events(job)
    assert [e["cursor"] for e in events] == list(range(1, len(events) + 1))
    assert [e["type"] for e in events] == ["state", "state", "state", "attempt", "log", "state"]
    assert events[4]["line"] == "hello"
    assert {e["attempt"] for e in events[1:]} == {1}


def test_a_batch_written_twice_counts_once(job: Job, worker: PretendWorker) -> None:
    attempt = placed(worker)
    batch = [contract.Metric(time=1.0, points=(("loss", 1, 0.5, 1.0),))]
    for _ in range(2):
        attempts.record_events(attempt.pk, batch, spool_position=100, stored={})
    assert MetricSeries.objects.get().count == 1


def test_work_with_an_expired_lease_is_queued_again_under_a_new_fencing_token(
    job: Job, worker: PretendWorker
) -> None:
    first = placed(worker)
    worker.report(first, contract.Started(time=1.0))
    expire(first)
    assert attempt_end.reap() == 1
    job.refresh_from_db()
    assert (job.state, job.restarts) == ("retrying", 1)

    second = placed(worker)
    assert second.number == first.number + 1
    with pytest.raises(StaleFence):
        worker.report(first, contract.Log(time=3.0, line="I am still here"))
    with pytest.raises(StaleFence):
        attempt_end.finish(first.pk, Outcome.COMPLETED, result={})
    assert "I am still here" not in str(all_events(job))


def declared_lost(worker: PretendWorker, **differs: Any) -> Worker:
    """Declare a worker lost from a record with these differences."""
    row = Worker.objects.get(pk=worker.row.pk)
    attempt_end.declare_lost(row.pk, **{"name": row.name, "pid": row.pid, **differs})
    row.refresh_from_db()
    return row


@pytest.mark.parametrize(("claimed", "code", "restarts"), [(True, "worker_died", 1), (False, "unclaimed", 0)])
def test_the_attempts_of_a_dead_worker_end_and_it_gets_no_new_ones(
    job: Job, worker: PretendWorker, claimed: bool, code: str, restarts: int
) -> None:
    schedule.place_jobs()
    if claimed:
        worker.claim_all()
    assert declared_lost(worker).state == "lost"
    assert schedule.place_jobs() == 0
    job.refresh_from_db()
    attempt = Attempt.objects.get()
    assert (attempt.outcome, present(attempt.error)["code"]) == ("lost", code)
    assert (job.state, job.restarts) == ("retrying", restarts)


def test_a_dead_worker_is_declared_lost_even_if_its_attempt_cannot_be_ended(
    job: Job, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("a bug")

    placed(worker)
    monkeypatch.setattr(attempt_end, "_requeue_job", refuse)
    assert declared_lost(worker).state == "lost"


@pytest.mark.parametrize("differs", [{"pid": 2}, {"name": "of another yard"}])
def test_a_record_of_a_worker_older_than_the_database_changes_nothing(
    job: Job, worker: PretendWorker, differs: dict[str, Any]
) -> None:
    attempt = placed(worker)
    assert declared_lost(worker, **differs).state == "up"
    attempt.refresh_from_db()
    assert attempt.state == "running"


def test_a_job_that_is_lost_too_often_fails_with_an_error(job: Job, worker: PretendWorker) -> None:
    Job.objects.filter(pk=job.pk).update(max_restarts=1)
    for _ in range(2):
        expire(placed(worker))
        attempt_end.reap()
    job.refresh_from_db()
    assert job.state == "failed"
    assert present(job.error)["code"] == "too_many_restarts"


def test_an_attempt_whose_end_raises_an_error_still_frees_its_slots(
    job: Job, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("a bug")

    attempt = placed(worker)
    expire(attempt)
    monkeypatch.setattr(attempt_end, "_requeue_job", refuse)
    attempt_end.reap()
    attempt.refresh_from_db()
    job.refresh_from_db()
    assert (attempt.state, job.state, present(job.error)["code"]) == ("ended", "failed", "internal")


def test_a_data_set_whose_profile_could_not_be_ended_is_failed_instead_of_preparing_for_ever(
    installation: Yard, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = DatasetVersion.objects.create(dataset=installation.dataset.dataset, number=2)
    profiles.queue_profile(version, by=None)
    attempt = placed(worker)
    expire(attempt)
    monkeypatch.setattr(attempt_end, "_requeue_job", Mock(side_effect=RuntimeError("a bug")))
    attempt_end.reap()
    version.refresh_from_db()
    assert (version.state, present(version.error)["code"]) == ("failed", "internal")


def test_an_attempt_renewed_after_its_end_raised_an_error_continues(
    job: Job, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("a bug")

    def renew_first(expired: Attempt, cause: Exception) -> None:
        attempts.renew(worker.row.pk, [attempt.pk])
        abandon(expired, cause)

    attempt, abandon = placed(worker), attempt_end._abandon_attempt
    expire(attempt)
    monkeypatch.setattr(attempt_end, "_requeue_job", refuse)
    monkeypatch.setattr(attempt_end, "_abandon_attempt", renew_first)
    attempt_end.reap()
    attempt.refresh_from_db()
    job.refresh_from_db()
    assert (attempt.state, job.state, job.error) == ("running", "starting", None)
