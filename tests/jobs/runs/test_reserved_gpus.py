"""Single GPUs of a box are reserved: others do not get them, and only some readers learn for whom."""

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from jobs import clock
from jobs.actions.runs import reservations, schedule, workers
from jobs.actions.runs.reservations import WantedReservation
from jobs.errors import BadInput
from jobs.models import Attempt, Job, Membership, Reservation, User
from jobs.queries.runs.gpus.reserved import gpus_of_attempt
from jobs.queries.runs.jobs import reasons_to_wait
from tests.jobs.yard import PretendWorker, Yard

HOUR = dt.timedelta(hours=1)
KEEPS = {"keeps_reserved_gpus": True}


class Box(PretendWorker):
    """A worker with GPUs, whose runs get the GPUs that the test chooses."""

    def __init__(self, gpus: int = 2, **fields: Any) -> None:
        settings: dict[str, Any] = {"slots": gpus, "gpus": gpus, "name": "box", "info": KEEPS}
        super().__init__(**settings | fields)

    def beat(self, **attempts: int) -> None:
        """Send a heartbeat with an attempt on some GPUs, such as `gpu0=7`."""
        names = [device["name"] for device in self.row.devices]
        held = {f"gpu:{name[3:]}": [attempt] for name, attempt in attempts.items()}
        devices = [{"name": name, "kind": "NVIDIA H200", "attempts": held.get(name, [])} for name in names]
        assert workers.heartbeat(self.row.pk, devices=devices, info=dict(self.row.info))


@pytest.fixture
def admin(installation: Yard) -> User:
    del installation
    return User.objects.create(username="root", is_superuser=True)


@pytest.fixture
def ben(admin: User) -> User:
    del admin
    return User.objects.create(username="ben")


def reserve(by: User, *gpus: str, **fields: Any) -> Reservation:
    begins = fields.pop("begins", None)
    given = {"pool": "default", "begins": begins, "ends": (begins or timezone.now()) + HOUR, "user": "ben"}
    wanted = WantedReservation(**given | {"worker": "box", "gpus": gpus} | fields)
    return reservations.create_reservation(wanted, by=by)


def refused_at(by: User, *gpus: str, **fields: Any) -> tuple[str, str]:
    with pytest.raises(BadInput) as refused:
        reserve(by, *gpus, **fields)
    (problem,) = refused.value.problems
    return problem.pointer, problem.message


def waits(job: Job) -> str:
    schedule.place_jobs()
    job.refresh_from_db()
    return job.why_waiting


def submit(yard: Yard, **parts: Any) -> Job:
    job: Job = yard.submit(**parts)
    return job


def for_ben(yard: Yard, ben: User, **parts: Any) -> Job:
    """Submit a job of the person who has the reservation."""
    job = submit(yard, **parts)
    Job.objects.filter(pk=job.pk).update(created_by=ben)
    return job


def test_others_get_the_rest_of_the_box_and_the_holder_the_reserved_gpu(
    installation: Yard, admin: User, ben: User
) -> None:
    box = Box(3)
    row = reserve(admin, "gpu:1")
    first, second, third = (submit(installation) for _ in range(3))
    reason = waits(third)
    assert [Attempt.objects.filter(job=job).count() for job in (first, second, third)] == [1, 1, 0]
    assert reason.startswith("It needs 1 of the 3 slots of pool default; 0 free now.")
    assert f"Reserved for others (reservation {row.pk}) from " in reason
    assert reason.endswith(": gpu:1 of worker box.")
    for attempt in box.claim_all():
        assert [*gpus_of_attempt(attempt.pk).kept] == ["gpu:1"]
    mine = for_ben(installation, ben)
    schedule.place_jobs()
    attempt = Attempt.objects.get(job=mine)
    assert gpus_of_attempt(attempt.pk) == ({}, frozenset({"gpu:1"}))


def test_a_slot_that_is_free_gives_no_stranger_the_reserved_gpu(
    installation: Yard, admin: User, ben: User
) -> None:
    """The holder may use the slot for a run on another GPU, and then the reserved one is the last."""
    box = Box(2)
    reserve(admin, "gpu:1")
    for_ben(installation, ben, mesh={"devices": ["gpu:0"], "shape": [1], "axis_names": ["data"]})
    schedule.place_jobs()
    (attempt,) = box.claim_all()
    box.beat(gpu0=attempt.pk)
    assert "gpu:1 of worker box" in waits(submit(installation))
    assert Attempt.objects.count() == 1


def test_a_job_for_the_reserved_gpu_waits_with_the_limit_that_would_do_and_blocks_no_one(
    installation: Yard, admin: User, ben: User
) -> None:
    Box(2)
    reserve(admin, "gpu:1", begins=timezone.now() + 2 * HOUR)
    named = {"mesh": {"devices": ["gpu:1"], "shape": [1], "axis_names": ["data"]}}
    by_wish = {"resources": {"gpu": {"name": "gpu:1"}}}
    both = {"mesh": {"devices": "gpu", "shape": [2], "axis_names": ["data"]}, "resources": {"slots": 2}}
    jobs = [submit(installation, **parts) for parts in (named, by_wish, both)]
    other = submit(installation)
    for job in jobs:
        reason = waits(job)
        assert reason.startswith("It waits for ")
        assert ": gpu:1 of worker box. A job without a time limit may run for 24 h;" in reason
        assert "resources.max_minutes of at most 119 ends before." in reason
    assert Attempt.objects.filter(job=other).count() == 1


def test_work_that_ends_before_the_reservation_gets_the_gpu(
    installation: Yard, admin: User, ben: User
) -> None:
    Box(1)
    reserve(admin, "gpu:0", begins=timezone.now() + HOUR)
    long, short = submit(installation), submit(installation, resources={"max_minutes": 30})
    assert "gpu:0 of worker box" in waits(long)
    (attempt,) = Attempt.objects.all()
    assert attempt.job_id == short.pk
    assert gpus_of_attempt(attempt.pk) == ({}, frozenset())


def test_a_reservation_after_the_decision_is_known_to_the_worker_that_takes_the_gpu(
    installation: Yard, admin: User, ben: User
) -> None:
    box = Box(1)
    submit(installation)
    schedule.place_jobs()
    row = reserve(admin, "gpu:0")
    (attempt,) = box.claim_all()
    ((gpu, sentence),) = gpus_of_attempt(attempt.pk).kept.items()
    assert gpu == "gpu:0"
    assert sentence.startswith(f"Reserved for others (reservation {row.pk}) from ")


def test_a_worker_that_cannot_keep_single_gpus_gives_others_none(
    installation: Yard, admin: User, ben: User
) -> None:
    box = Box(2, info={})
    pointer, message = refused_at(admin, "gpu:1")
    assert (pointer, "earlier release" in message) == ("/gpus", True)
    # It was started in place of a newer one, which had the reservation.
    workers.heartbeat(box.row.pk, devices=box.row.devices, info=KEEPS)
    reserve(admin, "gpu:1")
    workers.heartbeat(box.row.pk, devices=box.row.devices, info={})
    reason = waits(submit(installation))
    assert (
        "It runs an earlier release, which cannot keep single GPUs, so others get none of its GPUs." in reason
    )
    mine = for_ben(installation, ben)
    schedule.place_jobs()
    assert Attempt.objects.get().job_id == mine.pk


def test_the_reason_names_the_holder_to_those_who_may_see_that_only(
    installation: Yard, admin: User, ben: User
) -> None:
    Box(1)
    row = reserve(admin, "gpu:0")
    job = submit(installation)
    assert "for others" in waits(job)
    assert (
        f"Reserved for others (reservation {row.pk}) from"
        in reasons_to_wait([job], installation.owner)[job.pk]
    )
    assert f"Reserved for ben (reservation {row.pk}) from" in reasons_to_wait([job], admin)[job.pk]
    Membership.objects.create(project=installation.project, user=ben, role="member")
    assert (
        f"Reserved for ben (reservation {row.pk}) from" in reasons_to_wait([job], installation.owner)[job.pk]
    )
    row.delete()
    assert "for others" in reasons_to_wait([job], admin)[job.pk]


def test_bad_gpus_are_refused_at_their_field(installation: Yard, admin: User, ben: User) -> None:
    Box(2)
    assert refused_at(admin, "gpu:7") == ("/gpus", "worker box has no 'gpu:7'; its GPUs are gpu:0, gpu:1")
    assert refused_at(admin, "gpu:1", "gpu:1")[0] == "/gpus"
    assert refused_at(admin, "gpu:1", worker="") == ("/worker", "name the worker whose GPUs these are")
    assert refused_at(admin, "gpu:1", slots=1)[0] == "/slots"
    first = reserve(admin, "gpu:1")
    pointer, message = refused_at(admin, "gpu:0", "gpu:1")
    assert pointer == "/gpus"
    assert message.startswith(f"gpu:1 of worker box is reserved by reservation {first.pk} from ")
    assert reserve(admin, "gpu:0", user="root").slots == 1
    reserve(admin, "gpu:1", begins=clock.now() + 2 * HOUR)
    assert refused_at(admin, worker="", slots=1)[0] == "/begins", "the slots of both GPUs are taken"
