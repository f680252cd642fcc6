"""Which worker a waiting job is placed on: size, GPUs, quotas and drains."""

from jobs import clock
from jobs.actions.runs import attempt_end, pipeline, schedule, workers
from jobs.models import Artifact, Attempt, Job, JobArtifact, Project, Worker
from jobs.queries.experiments import plan
from jobs.queries.search import waiting
from jobs.queries.storage import disk_use
from tests.jobs.runs.test_schedule import gpu_mesh, waits
from tests.jobs.yard import SEARCH, PretendWorker, Yard, suggest_from_grid


def test_a_large_job_blocks_the_small_ones_behind_it(installation: Yard) -> None:
    first, large, small = (
        installation.submit(),
        installation.submit(resources={"slots": 2}),
        installation.submit(),
    )
    worker = PretendWorker(slots=2)
    assert "It needs 2 of the 2 slots" in waits(large)
    assert f"Job {large.pk} is ahead of it" in waits(small)
    assert [a.job_id for a in worker.claim_all()] == [first.pk]


def test_a_job_larger_than_any_worker_shows_that_and_blocks_no_other(installation: Yard) -> None:
    huge, small = installation.submit(resources={"slots": 8}), installation.submit()
    worker = PretendWorker(slots=2)
    assert "the largest worker of pool default has 2" in waits(huge)
    assert [a.job_id for a in worker.claim_all()] == [small.pk]


def test_a_job_with_a_gpu_mesh_waits_for_a_worker_with_the_gpus_and_blocks_no_other(
    installation: Yard,
) -> None:
    double, single, plain = (
        installation.submit(**gpu_mesh(2)),
        installation.submit(**gpu_mesh(1)),
        installation.submit(),
    )
    cpu = PretendWorker(slots=4, name="cpu")
    assert waits(single).startswith("No worker of pool default has a GPU; ")
    assert [a.job_id for a in cpu.claim_all()] == [plain.pk]
    one = PretendWorker(slots=2, name="one", gpus=1)
    assert waits(double).startswith(
        "The job needs 2 GPUs on one worker, and the largest of pool default has 1"
    )
    assert [a.job_id for a in one.claim_all()] == [single.pk]


def test_a_job_larger_than_any_worker_with_its_gpus_shows_that_and_blocks_no_other(
    installation: Yard,
) -> None:
    huge, small = (
        installation.submit(**gpu_mesh(1) | {"resources": {"slots": 4}}),
        installation.submit(**gpu_mesh(1)),
    )
    PretendWorker(slots=8, name="cpu")
    gpu = PretendWorker(slots=2, name="gpu", gpus=1)
    reason = "It needs 4 slots on one worker; the largest worker of pool default with its GPUs has 2."
    assert waits(huge) == reason
    assert [a.job_id for a in gpu.claim_all()] == [small.pk]
    (warning,) = plan.resource_warnings(huge)
    assert warning.pointer == "/pool"
    assert warning.message.startswith(f"{reason} The job will wait; ")
    assert not plan.resource_warnings(small)


def test_a_large_job_blocks_only_the_workers_that_could_run_it(installation: Yard) -> None:
    installation.submit(resources={"slots": 4})
    PretendWorker(slots=4, name="large")
    schedule.place_jobs()
    large, small = installation.submit(resources={"slots": 4}), installation.submit()
    little = PretendWorker(slots=1, name="little")
    assert waits(large) == "It needs 4 of the 4 slots of pool default; 0 free now."
    assert [a.job_id for a in little.claim_all()] == [small.pk]


def test_a_job_that_waits_for_a_busy_gpu_does_not_block_workers_without_one(installation: Yard) -> None:
    PretendWorker(slots=1, name="gpu", gpus=1)
    schedule.place_jobs()
    installation.submit(**gpu_mesh(1))
    schedule.place_jobs()
    second, third, plain = (
        installation.submit(**gpu_mesh(1)),
        installation.submit(**gpu_mesh(1)),
        installation.submit(),
    )
    cpu = PretendWorker(slots=1, name="cpu")
    assert waits(second) == "It needs 1 of the 1 slot of pool default; 0 free now."
    assert f"Job {second.pk} is ahead of it" in waits(third)
    assert [a.job_id for a in cpu.claim_all()] == [plain.pk]


def test_the_trials_of_a_search_on_gpus_run_on_workers_with_gpus(installation: Yard) -> None:
    job = installation.submit(search=SEARCH, **gpu_mesh(1))
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


def test_a_projects_quota_bounds_its_slots(installation: Yard) -> None:
    Project.objects.update(max_slots=1)
    first, second = installation.submit(), installation.submit()
    worker = PretendWorker(slots=4)
    assert "uses 1 of its 1 slot." in waits(second)
    assert [a.job_id for a in worker.claim_all()] == [first.pk]


def test_a_project_at_its_disk_quota_starts_nothing_and_stops_no_other(installation: Yard) -> None:
    project = Project.objects.get()
    project.max_bytes = 100
    project.save()
    other = Project.objects.create(slug="other", name="Other", created_by=installation.owner)
    job, elsewhere = installation.submit(), installation.submit()
    Job.objects.filter(pk=elsewhere.pk).update(project=other)
    JobArtifact.objects.create(
        job=job, attempt=1, artifact=Artifact.objects.create(digest="9" * 64, bytes=200), role="log", name="l"
    )
    Job.objects.update(event_bytes=1)
    disk_use.forget_recent_bytes()
    worker = PretendWorker(slots=4)
    assert f"Files and events of project {project} use 202 bytes of its 100 bytes of disk." in waits(job)
    assert [a.job_id for a in worker.claim_all()] == [elsewhere.pk]


def test_a_draining_worker_takes_nothing_new(installation: Yard) -> None:
    worker = PretendWorker()
    workers.drain(worker.row, by=installation.owner)
    assert "draining" in waits(installation.submit())
    workers.enable(worker.row, by=installation.owner)
    assert schedule.place_jobs() == 1


def test_a_worker_without_disk_space_is_named(installation: Yard) -> None:
    worker = PretendWorker(name="box7")
    workers.heartbeat(worker.row.pk, devices=[], info={"no_space": True})
    assert "The disk of box7 is nearly full" in waits(installation.submit())


def test_a_search_runs_as_many_trials_as_its_spec_allows(installation: Yard) -> None:
    job = installation.submit(search=SEARCH | {"parallel_trials": 1})
    worker = PretendWorker(slots=4)
    pipeline.advance_all()
    suggest_from_grid(job)
    schedule.place_jobs()
    assert len(worker.claim_all()) == 1


def test_a_worker_with_an_expired_lease_is_lost_and_its_work_is_queued_again(installation: Yard) -> None:
    job = installation.submit()
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


def test_an_attempt_of_an_unknown_kind_does_not_stop_the_placement_of_others(installation: Yard) -> None:
    PretendWorker(slots=2)
    unknown = installation.submit()
    schedule.place_jobs()
    Job.objects.filter(pk=unknown.pk).update(kind="later")
    other = installation.submit()
    schedule.place_jobs()
    assert other.attempts.exists()
