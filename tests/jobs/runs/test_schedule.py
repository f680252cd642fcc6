from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from jobs import clock
from jobs.actions import leases
from jobs.actions.runs import attempt_end, pipeline, schedule, workers
from jobs.actions.search import suggest, trials
from jobs.models import Artifact, Attempt, Job, JobArtifact, Project, Worker
from jobs.queries.experiments import plan
from jobs.queries.runs import jobs, queue
from jobs.queries.runs.devices import mesh_of
from jobs.queries.runs.health import SCHEDULER_LEASE
from jobs.queries.search import waiting
from jobs.queries.storage import disk_use
from tests.jobs.yard import SEARCH, PretendWorker, Yard, suggest_from_grid


def waits(job: Job) -> str:
    schedule.place_jobs()
    job.refresh_from_db()
    return job.why_waiting


def test_a_job_without_a_worker_shows_how_to_start_one(yard: Yard) -> None:
    assert "manage.py worker --pool default" in waits(yard.submit())


def test_a_search_without_trials_shows_how_to_start_a_worker_and_then_that_one_chooses_them(
    yard: Yard,
) -> None:
    search = yard.submit(search=SEARCH)
    pipeline.advance_all()
    assert "manage.py worker --pool default" in waits(search)
    PretendWorker()
    assert waits(search) == waiting.CHOOSING_TRIALS


def test_an_error_while_trials_are_chosen_is_shown_until_they_are_there(yard: Yard) -> None:
    search = yard.submit(search=SEARCH)
    PretendWorker()
    pipeline.advance_all()
    claimed = suggest.claim_request(search.pk)
    assert claimed is not None
    suggest.report_failure(claimed, "the space is empty")
    assert waits(search) == "Choosing the next trial failed: the space is empty"


def test_an_error_reported_during_a_pass_is_not_overwritten_by_it(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = yard.submit(search=SEARCH)
    PretendWorker()
    pipeline.advance_all()
    claimed = suggest.claim_request(search.pk)
    assert claimed is not None
    explain = schedule._explain_searches_without_trials

    def report_first(*rows_and_pools: Any) -> None:
        suggest.report_failure(claimed, "the space is empty")
        explain(*rows_and_pools)

    monkeypatch.setattr(schedule, "_explain_searches_without_trials", report_first)
    assert waits(search) == "Choosing the next trial failed: the space is empty"


def test_a_job_that_no_scheduler_has_seen_shows_how_to_start_one(yard: Yard) -> None:
    job = yard.submit()
    assert jobs.job_out(job).why_waiting.endswith("manage.py scheduler")
    leases.hold(SCHEDULER_LEASE, "here", seconds=60)
    assert jobs.job_out(job).why_waiting == jobs.NOT_PLACED


def test_the_place_in_the_queue_is_by_priority_and_age(yard: Yard) -> None:
    submitted = [yard.submit(), yard.submit(), yard.submit(resources={"priority": 90})]
    places = [queue.queue_position(job) for job in submitted]
    assert places == [2, 3, 1]
    assert [
        entry.place for job in submitted for entry in queue.waiting_jobs(yard.owner) if entry.job == job
    ] == places
    PretendWorker(slots=4)
    schedule.place_jobs()
    submitted[0].refresh_from_db()
    assert queue.queue_position(submitted[0]) is None


def test_a_pass_without_waiting_rows_costs_two_statements(
    yard: Yard, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    PretendWorker(slots=1)
    with django_assert_num_queries(2):  # waiting jobs and searches, waiting trials
        assert schedule.place_jobs() == 0


def test_a_pass_reads_of_the_specs_of_waiting_jobs_only_their_meshes(yard: Yard) -> None:
    yard.submit()
    yard.submit(**gpu_mesh(2))
    PretendWorker(slots=1, gpus=1)
    # The database may return them in any order.
    read = sorted(schedule._waiting_jobs(), key=lambda job: job.pk)
    assert [mesh_of(job) is None for job in read] == [True, False]
    for job in read:
        assert job.get_deferred_fields() == {"results_json", "progress", "warnings", "error"}
        assert set(job._state.fields_cache) == {"project"}, "neither the revision nor the root"


def test_more_waiting_jobs_take_no_more_statements(yard: Yard) -> None:
    PretendWorker(slots=1, gpus=1)

    def statements() -> int:
        schedule.place_jobs()  # writes why each waits
        with CaptureQueriesContext(connection) as found:
            schedule.place_jobs()
        return len(found)

    yard.submit(resources={"slots": 2})
    few = statements()
    for _ in range(2):
        yard.submit(resources={"slots": 2})
        yard.submit(**gpu_mesh(2))
    assert statements() == few


def test_a_pass_over_waiting_trials_costs_six_statements(
    yard: Yard, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    search = yard.submit(search={**SEARCH, "parallel_trials": 1})
    worker = PretendWorker(slots=1)
    pipeline.advance_all()
    suggest_from_grid(search)
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    trials.queue_by_hand(search, {"units": 48}, by=yard.owner)
    trials.queue_by_hand(search, {"units": 64}, by=yard.owner)
    schedule.place_jobs()  # writes why they wait, and compiles the queries
    # Open attempts, jobs, trials, their search's revision, live workers, durations of the newest trials.
    # PostgreSQL is also asked for the time.
    with django_assert_max_num_queries(7 if connection.vendor == "postgresql" else 6):
        assert schedule.place_jobs() == 0
    assert attempt.job.trials.waiting().count() == 2


def test_priority_comes_before_age(yard: Yard) -> None:
    yard.submit()
    urgent = yard.submit(resources={"priority": 90})
    worker = PretendWorker(slots=1)
    schedule.place_jobs()
    assert [a.job_id for a in worker.claim_all()] == [urgent.pk]


def test_a_large_job_blocks_the_small_ones_behind_it(yard: Yard) -> None:
    first, large, small = yard.submit(), yard.submit(resources={"slots": 2}), yard.submit()
    worker = PretendWorker(slots=2)
    assert "It needs 2 of the 2 slots" in waits(large)
    assert f"Job {large.pk} is ahead of it" in waits(small)
    assert [a.job_id for a in worker.claim_all()] == [first.pk]


def test_a_job_larger_than_any_worker_shows_that_and_blocks_no_other(yard: Yard) -> None:
    huge, small = yard.submit(resources={"slots": 8}), yard.submit()
    worker = PretendWorker(slots=2)
    assert "the largest worker of pool default has 2" in waits(huge)
    assert [a.job_id for a in worker.claim_all()] == [small.pk]


def gpu_mesh(size: int) -> dict[str, Any]:
    mesh = {"devices": "gpu", "shape": [size], "axis_names": ["data"]}
    return {"mesh": mesh, "resources": {"slots": size}}


def test_a_job_with_a_gpu_mesh_waits_for_a_worker_with_the_gpus_and_blocks_no_other(yard: Yard) -> None:
    double, single, plain = yard.submit(**gpu_mesh(2)), yard.submit(**gpu_mesh(1)), yard.submit()
    cpu = PretendWorker(slots=4, name="cpu")
    assert waits(single).startswith("No worker of pool default has a GPU; ")
    assert [a.job_id for a in cpu.claim_all()] == [plain.pk]
    one = PretendWorker(slots=2, name="one", gpus=1)
    assert waits(double).startswith(
        "The job needs 2 GPUs on one worker, and the largest of pool default has 1"
    )
    assert [a.job_id for a in one.claim_all()] == [single.pk]


def test_a_job_larger_than_any_worker_with_its_gpus_shows_that_and_blocks_no_other(yard: Yard) -> None:
    huge, small = yard.submit(**gpu_mesh(1) | {"resources": {"slots": 4}}), yard.submit(**gpu_mesh(1))
    PretendWorker(slots=8, name="cpu")
    gpu = PretendWorker(slots=2, name="gpu", gpus=1)
    reason = "It needs 4 slots on one worker; the largest worker of pool default with its GPUs has 2."
    assert waits(huge) == reason
    assert [a.job_id for a in gpu.claim_all()] == [small.pk]
    (warning,) = plan.resource_warnings(huge)
    assert warning.pointer == "/pool"
    assert warning.message.startswith(f"{reason} The job will wait; ")
    assert not plan.resource_warnings(small)


def test_a_large_job_blocks_only_the_workers_that_could_run_it(yard: Yard) -> None:
    yard.submit(resources={"slots": 4})
    PretendWorker(slots=4, name="large")
    schedule.place_jobs()
    large, small = yard.submit(resources={"slots": 4}), yard.submit()
    little = PretendWorker(slots=1, name="little")
    assert waits(large) == "It needs 4 of the 4 slots of pool default; 0 free now."
    assert [a.job_id for a in little.claim_all()] == [small.pk]


def test_a_job_that_waits_for_a_busy_gpu_does_not_block_workers_without_one(yard: Yard) -> None:
    PretendWorker(slots=1, name="gpu", gpus=1)
    schedule.place_jobs()
    yard.submit(**gpu_mesh(1))
    schedule.place_jobs()
    second, third, plain = yard.submit(**gpu_mesh(1)), yard.submit(**gpu_mesh(1)), yard.submit()
    cpu = PretendWorker(slots=1, name="cpu")
    assert waits(second) == "It needs 1 of the 1 slot of pool default; 0 free now."
    assert f"Job {second.pk} is ahead of it" in waits(third)
    assert [a.job_id for a in cpu.claim_all()] == [plain.pk]


def test_the_trials_of_a_search_on_gpus_run_on_workers_with_gpus(yard: Yard) -> None:
    job = yard.submit(search=SEARCH, **gpu_mesh(1))
    cpu, gpu = PretendWorker(slots=8, name="cpu"), PretendWorker(slots=2, name="gpu", gpus=2)
    pipeline.advance_all()
    suggest_from_grid(job)
    Worker.objects.filter(name="gpu").update(state=Worker.State.DRAINING)
    schedule.place_jobs()
    job.refresh_from_db()
    assert set(waiting.waiting_reasons(job).values()) == {
        "No worker of pool default has a GPU; the Workers page shows why a worker uses no GPU."
    }
    Worker.objects.filter(name="gpu").update(state=Worker.State.UP)
    schedule.place_jobs()
    assert (len(cpu.claim_all()), len(gpu.claim_all())) == (0, 2)


def test_a_projects_quota_bounds_its_slots(yard: Yard) -> None:
    Project.objects.update(max_slots=1)
    first, second = yard.submit(), yard.submit()
    worker = PretendWorker(slots=4)
    assert "uses 1 of its 1 slot." in waits(second)
    assert [a.job_id for a in worker.claim_all()] == [first.pk]


def test_a_project_at_its_disk_quota_starts_nothing_and_stops_no_other(yard: Yard) -> None:
    project = Project.objects.get()
    project.max_bytes = 100
    project.save()
    other = Project.objects.create(slug="other", name="Other", created_by=yard.owner)
    job, elsewhere = yard.submit(), yard.submit()
    Job.objects.filter(pk=elsewhere.pk).update(project=other)
    JobArtifact.objects.create(
        job=job, attempt=1, artifact=Artifact.objects.create(digest="9" * 64, bytes=200), role="log", name="l"
    )
    Job.objects.update(event_bytes=1)
    disk_use.forget_recent_bytes()
    worker = PretendWorker(slots=4)
    assert f"Files and events of project {project} use 202 bytes of its 100 bytes of disk." in waits(job)
    assert [a.job_id for a in worker.claim_all()] == [elsewhere.pk]


def test_a_draining_worker_takes_nothing_new(yard: Yard) -> None:
    worker = PretendWorker()
    workers.drain(worker.row, by=yard.owner)
    assert "draining" in waits(yard.submit())
    workers.enable(worker.row, by=yard.owner)
    assert schedule.place_jobs() == 1


def test_a_worker_without_disk_space_is_named(yard: Yard) -> None:
    worker = PretendWorker(name="box7")
    workers.heartbeat(worker.row.pk, devices=[], info={"no_space": True})
    assert "The disk of box7 is nearly full" in waits(yard.submit())


def test_a_search_runs_as_many_trials_as_its_spec_allows(yard: Yard) -> None:
    job = yard.submit(search=SEARCH | {"parallel_trials": 1})
    worker = PretendWorker(slots=4)
    pipeline.advance_all()
    suggest_from_grid(job)
    schedule.place_jobs()
    assert len(worker.claim_all()) == 1


def test_a_worker_with_an_expired_lease_is_lost_and_its_work_is_queued_again(yard: Yard) -> None:
    job = yard.submit()
    worker = PretendWorker()
    schedule.place_jobs()
    worker.claim_all()
    past = clock.seconds_from_now(-1)
    Worker.objects.update(lease_until=past)
    Attempt.objects.update(lease_until=past)
    workers.mark_lost()
    attempt_end.reap()
    job.refresh_from_db()
    assert (job.state, Worker.objects.get().state) == ("retrying", "lost")
    assert not workers.heartbeat(worker.row.pk, devices=[], info={})


def test_an_attempt_of_an_unknown_kind_does_not_stop_the_placement_of_others(yard: Yard) -> None:
    PretendWorker(slots=2)
    unknown = yard.submit()
    schedule.place_jobs()
    Job.objects.filter(pk=unknown.pk).update(kind="later")
    other = yard.submit()
    schedule.place_jobs()
    assert other.attempts.exists()
