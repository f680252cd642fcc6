"""Quotas for running jobs: event shares, stored event bytes, and checkpoints on disk."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import F, Sum
from django.db.models.functions import Length

from jobs.actions.runs import (
    attempt_end,
    attempts,
    control,
    metrics,
    pipeline,
    run_quotas,
    schedule,
)
from jobs.errors import QuotaReached
from jobs.messages import events as contract
from jobs.models import Attempt, Checkpoint, EventChunk, Job, MetricChunk, Project
from jobs.queries.people import quotas
from jobs.queries.storage import disk_use
from jobs.states import Outcome
from tests.jobs.runs.test_metrics import table
from tests.jobs.yard import PretendWorker, Yard
from tests.present import present

ELSEWHERE = "elsewhere"


def placed(installation: Yard, worker: PretendWorker, **fields: Any) -> Attempt:
    job = installation.submit()
    Job.objects.filter(pk=job.pk).update(**fields)
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    return attempt


@pytest.fixture
def elsewhere(installation: Yard) -> Project:
    return Project.objects.create(
        slug=ELSEWHERE, name="Elsewhere", created_by=installation.owner, max_events=1000
    )


def stored_bytes() -> int:
    return sum(
        rows.objects.aggregate(total=Sum(Length("data")))["total"] or 0 for rows in (EventChunk, MetricChunk)
    )


def test_attempts_share_the_events_of_their_project_by_slots(installation: Yard, elsewhere: Project) -> None:
    Project.objects.filter(pk=installation.project.pk).update(max_events=900)
    worker = PretendWorker(slots=8)
    small, large = placed(installation, worker), placed(installation, worker, slots=2)
    other = placed(installation, worker, project=elsewhere)
    assert run_quotas.share_events(large.pk, 0) == 900, "the other attempt uses none"
    run_quotas.share_events(large.pk, 900)
    assert run_quotas.share_events(small.pk, 0) == 300
    run_quotas.share_events(small.pk, 300)
    assert run_quotas.share_events(large.pk, 900) == 600
    assert run_quotas.share_events(other.pk, 5000) == 1000, "another project has a quota of its own"
    assert quotas.quotas_out(installation.project).events.used == 1200
    attempt_end.finish(small.pk, Outcome.COMPLETED)
    assert run_quotas.share_events(large.pk, 900) == 900


def test_the_default_is_a_quota_too_and_a_job_without_a_project_has_none(
    installation: Yard, worker: PretendWorker, settings: Any
) -> None:
    settings.TRAINYARD_PROJECT_EVENTS_PER_SECOND = 77
    assert run_quotas.share_events(placed(installation, worker).pk, 0) == 77
    assert run_quotas.share_events(placed(installation, worker, project=None).pk, 0) is None


def test_a_fenced_attempt_stores_no_rate(installation: Yard, worker: PretendWorker) -> None:
    attempt = placed(installation, worker)
    attempt_end.finish(attempt.pk, Outcome.LOST, error={"code": "lost", "message": "a test"})
    run_quotas.share_events(attempt.pk, 5000)
    assert Attempt.objects.get(pk=attempt.pk).event_rate == 0


def test_the_stored_bytes_of_events_and_points_count_exactly_also_after_a_compaction(
    installation: Yard, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "LOOSE", 4)
    attempt = placed(installation, worker)
    for step in range(10):
        worker.report(
            attempt, table(step * 50, 50, "loss", "accuracy"), contract.Log(time=1.0, line="x" * 99)
        )
        assert Job.objects.get(pk=attempt.job_id).event_bytes == stored_bytes()
    before = disk_use.bytes_of_project(installation.project.pk)
    Job.objects.filter(pk=attempt.job_id).update(event_bytes=F("event_bytes") + 5)
    assert disk_use.bytes_of_project(installation.project.pk) == before + 5


def test_the_upgrade_counts_the_events_that_are_there(installation: Yard, worker: PretendWorker) -> None:
    attempt = placed(installation, worker)
    step = Job.objects.create(
        project=installation.project, parent=attempt.job, root=attempt.job, kind="train"
    )
    worker.report(attempt, table(0, 50, "loss"))
    series = MetricChunk.objects.get().series
    series.pk, series.job = None, step
    series.save()
    MetricChunk.objects.create(series=series, first_x=0, last_x=1, count=1, data=b"12345")
    Job.objects.update(event_bytes=0)
    migration = import_module("jobs.migrations.0032_upload_and_event_quotas")
    editor: Any = SimpleNamespace(connection=connection)
    migration.count_event_bytes(apps, editor)
    sizes = dict(Job.objects.values_list("pk", "event_bytes"))
    assert sizes == {attempt.job_id: stored_bytes(), step.pk: 0}


def test_a_batch_that_is_refused_counts_nothing(
    installation: Yard, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = placed(installation, worker)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr("jobs.hints.send", fail)
        with pytest.raises(RuntimeError):
            attempts.record_events(attempt.pk, [table(0, 5, "loss")], spool_position=70, stored={})
    assert Job.objects.get(pk=attempt.job_id).event_bytes == stored_bytes()
    for _ in range(2):
        attempts.record_events(attempt.pk, [table(0, 5, "loss")], spool_position=70, stored={})
        assert Job.objects.get(pk=attempt.job_id).event_bytes == stored_bytes()


def checkpoint(step: int, size: int) -> contract.CheckpointCommitted:
    return contract.CheckpointCommitted(
        time=1.0, folder=f"job-1/{step}", step=step, epoch=step, manifest="0" * 64, bytes=size
    )


def test_checkpoints_above_the_disk_quota_are_refused_in_their_project_alone(
    installation: Yard, worker: PretendWorker, elsewhere: Project
) -> None:
    attempt = placed(installation, worker)
    other = placed(installation, worker, project=elsewhere)
    Project.objects.filter(pk=installation.project.pk).update(
        max_bytes=disk_use.bytes_of_project(installation.project.pk) + 10_000
    )
    worker.report(attempt, checkpoint(1, 4000))
    disk_use.forget_recent_bytes()
    run_quotas.require_within_disk(attempt.pk)
    worker.report(attempt, checkpoint(2, 9000))
    disk_use.forget_recent_bytes()
    with pytest.raises(QuotaReached, match="Files and events of project"):
        run_quotas.require_within_disk(attempt.pk)
    worker.report(other, checkpoint(1, 90_000))
    run_quotas.require_within_disk(other.pk)


def test_checkpoints_that_nothing_resumes_from_are_removed_before_a_run_is_refused(
    installation: Yard, worker: PretendWorker
) -> None:
    attempt = placed(installation, worker)
    Project.objects.filter(pk=installation.project.pk).update(
        max_bytes=disk_use.bytes_of_project(installation.project.pk) + 10_000
    )
    for step in range(1, 6):
        worker.report(attempt, checkpoint(step, 4000))
    disk_use.forget_recent_bytes()
    run_quotas.require_within_disk(attempt.pk)
    assert list(Checkpoint.objects.kept().order_by("step").values_list("step", flat=True)) == [4, 5]


def test_a_run_that_was_ended_for_the_quota_fails_and_can_be_retried_once_there_is_room(
    installation: Yard, worker: PretendWorker
) -> None:
    attempt = placed(installation, worker)
    worker.report(attempt, contract.Started(time=1.0), checkpoint(1, 9000))
    error = {"code": "quota_reached", "message": "full"}
    attempt_end.finish(attempt.pk, Outcome.FAILED, error=error)
    job = attempt.job
    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", error)
    Project.objects.filter(pk=installation.project.pk).update(max_bytes=8000)
    present(job.project).refresh_from_db()
    disk_use.forget_recent_bytes()
    with pytest.raises(QuotaReached):
        control.retry(job, by=installation.owner)
    Project.objects.filter(pk=installation.project.pk).update(max_bytes=None)
    control.retry(Job.objects.get(pk=job.pk), by=installation.owner)
    pipeline.advance_all()
    schedule.place_jobs()
    assert [again.job_id for again in worker.claim_all()] == [job.pk]
