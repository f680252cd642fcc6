"""A waiting job of higher priority lets a running one write a checkpoint and wait again."""

import pytest

from jobs.actions.runs import attempt_end, attempts, control, pipeline, preemption, schedule
from jobs.errors import Forbidden
from jobs.models import Attempt, AuditEvent, Checkpoint, Job, PoolSettings, User
from jobs.queries.runs.events import read_events
from jobs.states import Desired, Outcome
from tests.jobs.runs.test_schedule import waits
from tests.jobs.yard import SEARCH, PretendWorker, Yard, begun, suggest_from_grid


@pytest.fixture
def preempting(installation: Yard) -> None:
    PoolSettings.objects.create(pool="default", preemption=True)


def write_checkpoint(attempt: Attempt) -> None:
    trial = attempt.trials.first()
    Checkpoint.objects.create(
        job=attempt.job,
        trial=trial,
        execution=None if trial is None else 1,
        attempt=attempt.number,
        folder=f"c{attempt.pk}",
        step=1,
        epoch=1,
        bytes=1,
        manifest="m",
    )


def running_job(installation: Yard, worker: PretendWorker, priority: int = 10) -> tuple[Job, Attempt]:
    job = installation.submit(resources={"priority": priority})
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    Job.objects.filter(pk=job.pk).update(state="running")
    write_checkpoint(attempt)
    return job, attempt


def desired(worker: PretendWorker, attempt: Attempt) -> Desired:
    return attempts.renew(worker.row.pk, [attempt.pk])[attempt.pk]


def lines_of(job: Job) -> list[str]:
    return [event["line"] for event in read_events(job.pk, after=0).items if event["type"] == "log"]


@pytest.mark.usefixtures("preempting")
def test_the_lowest_running_job_writes_a_checkpoint_and_waits_again(installation: Yard) -> None:
    worker = PretendWorker(slots=1)
    low, attempt = running_job(installation, worker)
    urgent = installation.submit(resources={"priority": 90})
    assert waits(urgent) == (
        f"It needs 1 of the 1 slot of pool default; 0 free now. Job {low.pk} has a lower priority: it writes "
        "a checkpoint and makes room."
    )
    assert desired(worker, attempt) is Desired.PAUSED
    attempt_end.finish(attempt.pk, Outcome.PAUSED)
    low.refresh_from_db()
    assert (low.state, low.desired, low.restarts) == ("retrying", "running", 0)
    schedule.place_jobs()
    (placed,) = worker.claim_all()
    assert placed.job_id == urgent.pk
    assert any(line.startswith(f"Preempted: job {urgent.pk} has priority 90") for line in lines_of(low))
    assert any(line.startswith(f"Job {low.pk} of priority 10 writes") for line in lines_of(urgent))
    # It does not preempt back, and continues once there is room.
    assert desired(worker, placed) is Desired.RUNNING
    worker.run(placed)
    schedule.place_jobs()
    assert [again.job_id for again in worker.claim_all()] == [low.pk]


@pytest.mark.usefixtures("preempting")
def test_a_scheduler_that_died_after_the_request_leaves_it_to_the_next_one(installation: Yard) -> None:
    worker = PretendWorker(slots=2)
    running_job(installation, worker)
    running_job(installation, worker)
    urgent = installation.submit(resources={"priority": 90})
    schedule.place_jobs()
    # Whatever the next schedulers know is in the database.
    for _ in range(3):
        assert schedule.place_jobs() == 0
    asked = Attempt.objects.open().exclude(preempted_for=None)
    assert [row.preempted_for_id for row in asked] == [urgent.pk]
    attempt_end.finish(asked.get().pk, Outcome.PAUSED)
    assert schedule.place_jobs() == 1
    assert [attempt.job_id for attempt in worker.claim_all()] == [urgent.pk]


def test_nothing_is_preempted_unless_that_is_switched_on(installation: Yard) -> None:
    worker = PretendWorker(slots=1)
    _, attempt = running_job(installation, worker)
    installation.submit(resources={"priority": 90})
    schedule.place_jobs()
    assert desired(worker, attempt) is Desired.RUNNING


@pytest.mark.usefixtures("preempting")
def test_a_run_without_a_checkpoint_is_left_alone(installation: Yard) -> None:
    worker = PretendWorker(slots=1)
    _, attempt = running_job(installation, worker)
    Checkpoint.objects.all().delete()
    installation.submit(resources={"priority": 90})
    schedule.place_jobs()
    assert desired(worker, attempt) is Desired.RUNNING


@pytest.mark.usefixtures("preempting")
def test_a_trial_is_queued_again_and_its_search_continues(installation: Yard) -> None:
    search = installation.submit(search={**SEARCH, "parallel_trials": 1}, resources={"priority": 10})
    worker = PretendWorker(slots=1)
    pipeline.advance_all()
    suggest_from_grid(search)
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    worker.report(attempt, begun(attempt.trials.get()))
    write_checkpoint(attempt)
    installation.submit(resources={"priority": 90})
    schedule.place_jobs()
    assert desired(worker, attempt) is Desired.PAUSED
    attempt_end.finish(attempt.pk, Outcome.PAUSED)
    trial = attempt.trials.get()
    assert (trial.state, trial.restarts) == ("queued", 0)


@pytest.mark.usefixtures("preempting")
def test_a_user_who_pauses_a_preempted_job_is_obeyed(installation: Yard) -> None:
    worker = PretendWorker(slots=1)
    low, attempt = running_job(installation, worker)
    installation.submit(resources={"priority": 90})
    schedule.place_jobs()
    control.pause(low, by=installation.owner)
    attempt_end.finish(attempt.pk, Outcome.PAUSED)
    low.refresh_from_db()
    assert low.state == "paused"


@pytest.mark.usefixtures("preempting")
def test_a_job_whose_priority_was_raised_meanwhile_is_not_asked(installation: Yard) -> None:
    worker = PretendWorker(slots=1)
    low, attempt = running_job(installation, worker)
    urgent = installation.submit(resources={"priority": 90})
    control.change(low, priority=95, by=installation.owner)
    assert not preemption.preempt(attempt.pk, waiting=urgent.pk)


def test_only_administrators_switch_it_on(installation: Yard) -> None:
    with pytest.raises(Forbidden):
        preemption.set_preemption("default", True, by=installation.owner)
    admin = User.objects.create(username="root", is_superuser=True)
    preemption.set_preemption("default", True, by=admin)
    assert AuditEvent.objects.get(action="pool.preemption").detail == {"pool": "default", "on": True}
