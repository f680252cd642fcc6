"""What attempts report: progress, warnings, artifacts and their end."""

import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.actions.runs import attempt_end, control, pipeline
from jobs.errors import StaleFence
from jobs.messages import events as contract
from jobs.models import Job
from jobs.queries.runs import jobs as job_queries
from jobs.queries.search import waiting
from jobs.states import Outcome
from jobs.store import StoredFile
from tests.jobs.runs.test_attempts import all_events, expire, placed
from tests.jobs.yard import PretendWorker, Yard, begun, placed_search


@pytest.fixture
def job(installation: Yard) -> Job:
    return installation.submit()


@pytest.mark.parametrize("code", ["drained", "sandbox_refused"])
def test_a_worker_that_cannot_run_a_job_does_not_use_up_a_restart(
    job: Job, worker: PretendWorker, code: str
) -> None:
    attempt = placed(worker)
    attempt_end.finish(attempt.pk, Outcome.LOST, error={"code": code, "message": "not on this worker"})
    job.refresh_from_db()
    assert (job.state, job.restarts) == ("retrying", 0)


def test_a_lost_worker_while_pausing_leaves_the_job_paused(
    job: Job, installation: Yard, worker: PretendWorker
) -> None:
    attempt = placed(worker)
    worker.report(attempt, contract.Started(time=1.0))
    job.refresh_from_db()
    control.pause(job, by=installation.owner)
    expire(attempt)
    attempt_end.reap()
    pipeline.advance_all()
    job.refresh_from_db()
    assert job.state == "paused"


def test_a_phase_is_part_of_the_progress_until_units_are_counted_again(
    installation: Yard, worker: PretendWorker
) -> None:
    job = installation.submit(search=None)
    attempt = placed(worker)
    counted = contract.Progress(time=time.time(), done=1, total=4, unit="epochs")

    def phase_after(*events: contract.RunnerEvent) -> str | None:
        worker.report(attempt, *events)
        progress = job_queries.job_out(Job.objects.get(pk=job.pk)).progress
        assert progress.total == 4
        return progress.phase

    assert phase_after(contract.Started(time=time.time()), counted) is None
    timing = contract.Phase(time=time.time(), name="timing")
    assert phase_after(contract.Phase(time=time.time(), name="compiling"), timing) == "timing"
    assert phase_after(counted) is None
    assert phase_after(counted, timing) == "timing"
    assert [event["name"] for event in all_events(job) if event["type"] == "phase"] == [
        "compiling", "timing", "timing"
    ]  # fmt: skip


def test_the_progress_of_a_trial_reads_the_record_of_its_attempt_only_to_end_a_phase(
    installation: Yard, worker: PretendWorker
) -> None:
    search, (attempt, *_) = placed_search(installation, worker)
    trial = attempt.trials.order_by("number")[0]
    counted = contract.Progress(time=time.time(), trial=trial.number, done=1, total=4, unit="epochs")
    compiling = contract.Phase(time=time.time(), trial=trial.number, name="compiling")
    worker.report(attempt, contract.Started(time=time.time()), begun(trial))

    def reads(event: contract.RunnerEvent) -> int:
        with CaptureQueriesContext(connection) as queries:
            worker.report(attempt, event)
        return sum('"jobs_attempt"."record" FROM' in query["sql"] for query in queries)

    assert (reads(counted), waiting.phases_of_search(search)) == (0, {})
    assert (reads(compiling), waiting.phases_of_search(search)) == (1, {trial.number: "compiling"})
    assert (reads(compiling), waiting.phases_of_search(search)) == (0, {trial.number: "compiling"})
    assert (reads(counted), waiting.phases_of_search(search)) == (1, {})
    assert reads(counted) == 0


def test_a_repeated_warning_is_shown_once_with_the_results(job: Job, worker: PretendWorker) -> None:
    attempt = placed(worker)
    warned = contract.Warned(time=time.time(), code="cap", message="The best epoch is the last one.")
    worker.report(attempt, contract.Started(time=time.time()), warned, warned)
    job.refresh_from_db()
    assert job_queries.job_out(job).results["warnings"] == [
        {"code": "cap", "message": warned.message, "job": job.pk, "step": job.public_kind}
    ]
    assert sum(event["type"] == "warning" for event in all_events(job)) == 2


def test_a_very_long_warning_is_cut_in_the_row_of_the_job(job: Job, worker: PretendWorker) -> None:
    attempt, long = placed(worker), "x" * 10**6
    worker.report(
        attempt,
        contract.Started(time=time.time()),
        contract.Warned(time=time.time(), code=long, message=long),
    )
    job.refresh_from_db()
    assert [{len(text) for text in warning.values()} for warning in job.warnings] == [{2000}]


def test_an_artifact_is_recorded_under_its_digest(job: Job, worker: PretendWorker) -> None:
    attempt = placed(worker)
    written = contract.ArtifactWritten(
        time=time.time(), role="model", name="model.keras", path="out/model.keras"
    )
    worker.report(attempt, written, files={"out/model.keras": StoredFile("b" * 64, 10)})
    artifact = job.artifacts.get()
    assert (artifact.artifact_id, artifact.artifact.bytes) == ("b" * 64, 10)
    assert all_events(job)[-1]["digest"] == "b" * 64


def test_finishing_again_is_accepted_only_with_the_same_outcome(job: Job, worker: PretendWorker) -> None:
    attempt = placed(worker)
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={})
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={})
    with pytest.raises(StaleFence):
        attempt_end.finish(attempt.pk, Outcome.FAILED, error={})


def test_a_job_that_completes_while_stopping_is_stopped_and_keeps_its_result(
    job: Job, installation: Yard, worker: PretendWorker
) -> None:
    attempt = placed(worker)
    worker.report(attempt, contract.Started(time=1.0))
    job.refresh_from_db()
    control.stop(job, by=installation.owner)
    assert job.state == "stopping"
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={"best_epoch": 3})
    job.refresh_from_db()
    assert (job.state, job.results_json["best_epoch"]) == ("stopped", 3)
