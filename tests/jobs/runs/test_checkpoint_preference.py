"""Work that may resume is placed where its checkpoint is, and never on a worker that has just died."""

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs import clock
from jobs.actions.runs import attempt_end, checkpoint_preference, schedule, workers
from jobs.messages.events import CheckpointCommitted
from jobs.models import Attempt, Checkpoint, Job, Worker
from jobs.states import Outcome
from tests.jobs.yard import PretendWorker, Yard


@pytest.fixture(autouse=True)
def objects(settings: Any, tmp_path: Path) -> None:
    """Use object storage, so that each machine has a folder of its own."""
    settings.TRAINYARD_HOME = tmp_path
    settings.TRAINYARD_ARTIFACTS = f"memory://{tmp_path.name}"


class Machine(PretendWorker):
    """A worker on a machine of its own."""

    def __init__(self, name: str, slots: int = 1) -> None:
        super().__init__(slots=slots, name=name)
        self.place = f"place of {name}"
        self.beat()

    def beat(self) -> None:
        workers.heartbeat(self.row.pk, devices=[], info={"checkpoints": self.place})

    @property
    def attempts(self) -> list[Attempt]:
        return list(Attempt.objects.filter(worker=self.row).open())


def lost_training(installation: Yard, machine: Machine, *, copied: bool) -> Job:
    """Return a training that was lost on a machine after a checkpoint."""
    job = installation.submit()
    schedule.place_jobs()
    [attempt] = machine.claim_all()
    event = CheckpointCommitted(time=time.time(), folder="job-1/1", step=1, epoch=1, manifest="m", bytes=1)
    machine.report(attempt, event)
    Checkpoint.objects.update(stored=clock.now() if copied else None)
    attempt_end.finish(attempt.pk, Outcome.LOST)
    return job


def passed(seconds: float) -> None:
    """Let time pass since the loss."""
    earlier = clock.now() - timedelta(seconds=seconds)
    Attempt.objects.filter(state="ended").update(ended=earlier)
    Checkpoint.objects.update(created=earlier)


def test_the_worker_that_has_the_checkpoint_is_preferred_to_one_with_more_slots(installation: Yard) -> None:
    first = Machine("a")
    lost_training(installation, first, copied=True)
    second = Machine("b", slots=4)
    schedule.place_jobs()
    assert (len(first.attempts), len(second.attempts)) == (1, 0)


def test_after_a_restart_the_worker_of_the_same_machine_is_preferred(installation: Yard) -> None:
    first = Machine("a")
    lost_training(installation, first, copied=True)
    Worker.objects.filter(pk=first.row.pk).update(state="lost")
    Machine("b", slots=4)
    again = Machine("a")
    schedule.place_jobs()
    assert len(again.attempts) == 1


def test_work_waits_a_few_seconds_for_a_slot_of_that_worker_and_blocks_no_other(installation: Yard) -> None:
    first = Machine("a")
    job = lost_training(installation, first, copied=True)
    Job.objects.filter(pk=job.pk).update(priority=1)
    other = installation.submit()
    second = Machine("b")
    Job.objects.filter(pk=job.pk).update(state="paused")
    schedule.place_jobs()  # the other one takes a slot
    busy = first if first.attempts else second
    assert busy.attempts[0].job_id == other.pk
    if busy is second:
        Attempt.objects.filter(job=other).update(worker=first.row)
    Job.objects.filter(pk=job.pk).update(state="retrying")
    schedule.place_jobs()
    job.refresh_from_db()
    assert job.why_waiting == "Waits 5 s for worker a, which has its checkpoint."
    assert second.attempts == []
    third = installation.submit()
    schedule.place_jobs()
    assert [attempt.job_id for attempt in second.attempts] == [third.pk]
    passed(checkpoint_preference.PREFER_SECONDS + 1)
    last = Machine("c")
    schedule.place_jobs()
    assert [attempt.job_id for attempt in last.attempts] == [job.pk]


def test_with_a_copy_the_work_of_a_dead_worker_is_placed_at_once(installation: Yard) -> None:
    first, second = Machine("a"), None
    job = lost_training(installation, first, copied=True)
    Worker.objects.filter(pk=first.row.pk).update(state="lost")
    second = Machine("b")
    schedule.place_jobs()
    assert [attempt.job_id for attempt in second.attempts] == [job.pk]


def test_without_a_copy_it_waits_a_few_seconds_for_the_worker_to_return(installation: Yard) -> None:
    first = Machine("a")
    lost_training(installation, first, copied=False)
    Worker.objects.filter(pk=first.row.pk).update(state="lost")
    second = Machine("b")
    schedule.place_jobs()
    assert second.attempts == []
    passed(checkpoint_preference.PREFER_SECONDS + 1)
    schedule.place_jobs()
    assert len(second.attempts) == 1


def test_it_waits_longer_for_the_copy_of_a_worker_that_runs(installation: Yard) -> None:
    first = Machine("a")
    job = lost_training(installation, first, copied=False)
    Worker.objects.filter(pk=first.row.pk).update(state="draining")
    second = Machine("b")
    passed(checkpoint_preference.PREFER_SECONDS + 1)
    schedule.place_jobs()
    job.refresh_from_db()
    assert job.why_waiting == "Waits until worker a has copied its checkpoint to the artifact store."
    Checkpoint.objects.update(stored=clock.now())
    schedule.place_jobs()
    assert len(second.attempts) == 1


def test_a_worker_that_did_not_renew_a_lease_gets_nothing_until_its_next_heartbeat(
    installation: Yard,
) -> None:
    first = Machine("a")
    installation.submit()
    schedule.place_jobs()
    [attempt] = first.claim_all()
    # The worker died 12 s ago, so its own lease has not ended.
    Worker.objects.filter(pk=first.row.pk).update(lease_until=clock.seconds_from_now(3))
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=clock.seconds_from_now(-0.1))
    assert attempt_end.reap() == 1
    schedule.place_jobs()
    assert first.attempts == []
    second = Machine("b")
    schedule.place_jobs()
    assert len(second.attempts) == 1
    installation.submit()
    first.beat()
    schedule.place_jobs()
    assert len(first.attempts) == 1


def test_machines_with_one_folder_are_equal(installation: Yard, settings: Any, tmp_path: Path) -> None:
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "shared")
    first = Machine("a")
    lost_training(installation, first, copied=False)
    second = Machine("b", slots=4)
    schedule.place_jobs()
    assert len(second.attempts) == 1
