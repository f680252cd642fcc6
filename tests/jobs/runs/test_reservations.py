"""Slots are reserved for a person or a project, without overlap, by those with the right."""

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.people import person_limits
from jobs.actions.runs import reservations, schedule
from jobs.actions.runs.reservations import WantedReservation
from jobs.errors import BadInput, Forbidden, NotFound, StaleState
from jobs.models import AuditEvent, Membership, Reservation, User
from jobs.queries.runs import reservations as queries
from tests.jobs.runs.test_schedule import waits
from tests.jobs.yard import PretendWorker, Yard

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def admin(installation: Yard) -> User:
    del installation
    return User.objects.create(username="root", is_superuser=True)


@pytest.fixture
def ben(installation: Yard) -> User:
    person = User.objects.create(username="ben")
    Membership.objects.create(project=installation.project, user=person, role="member")
    return person


def reserve(by: User, **fields: Any) -> Reservation:
    begins = fields.pop("begins", timezone.now() + HOUR)
    given = {"pool": "default", "begins": begins, "ends": (begins or timezone.now()) + HOUR, "user": "ben"}
    return reservations.create_reservation(WantedReservation(**given | fields), by=by)


def refused_at(by: User, **fields: Any) -> tuple[str, str]:
    with pytest.raises(BadInput) as refused:
        reserve(by, **fields)
    (problem,) = refused.value.problems
    return problem.pointer, problem.message


def test_a_job_without_a_limit_waits_and_one_that_ends_before_runs(
    installation: Yard, admin: User, ben: User
) -> None:
    worker = PretendWorker(slots=2)
    reserve(admin)
    long, short = installation.submit(), installation.submit(resources={"max_minutes": 30})
    reason = waits(long)
    assert reason.startswith("Reserved for others (reservation ")
    assert "one with resources.max_minutes of at most 59 ends before." in reason
    assert [attempt.job_id for attempt in worker.claim_all()] == [short.pk]


def test_the_reserved_ones_use_their_slots_and_others_the_rest(
    installation: Yard, admin: User, ben: User
) -> None:
    worker = PretendWorker(slots=3, name="box")
    reserve(admin, begins=None, user="", project=installation.project.slug, slots=2, worker="box")
    jobs = [installation.submit() for _ in range(3)]
    schedule.place_jobs()
    assert sorted(attempt.job_id for attempt in worker.claim_all()) == [job.pk for job in jobs]


def test_an_ended_reservation_frees_its_slots_at_once(installation: Yard, admin: User, ben: User) -> None:
    PretendWorker(slots=1)
    row = reserve(admin, begins=None)
    job = installation.submit()
    assert waits(job).startswith(f"Reserved for others (reservation {row.pk}) from ")
    reservations.end_reservation(row, by=ben)
    assert schedule.place_jobs() == 1
    with pytest.raises(StaleState, match="already ended"):
        reservations.end_reservation(row, by=ben)


def test_overlapping_reservations_are_refused_with_the_one_that_they_overlap(admin: User, ben: User) -> None:
    PretendWorker(slots=4, name="box")
    begins = timezone.now() + HOUR
    first = reserve(admin, begins=begins, worker="box", slots=3)
    pointer, message = refused_at(admin, begins=begins + HOUR / 2, slots=2)
    assert pointer == "/begins"
    assert message.startswith(f"too few slots are left by reservation {first.pk}: 3 slots of worker box from")
    reserve(admin, begins=begins + HOUR / 2, slots=1)
    reserve(admin, begins=begins + 2 * HOUR)


def test_bad_values_are_refused_at_their_field(admin: User, ben: User) -> None:
    PretendWorker(slots=4, name="box")
    now = timezone.now()
    assert refused_at(admin, pool="other") == ("/pool", "no worker runs in pool 'other'")
    assert refused_at(admin, worker="bix") == (
        "/worker",
        "no worker 'bix' runs in pool 'default'; there are box",
    )
    assert refused_at(admin, slots=5)[0] == "/slots"
    assert refused_at(admin, begins=now - HOUR)[0] == "/begins"
    assert refused_at(admin, begins=now + dt.timedelta(days=400))[0] == "/begins"
    assert refused_at(admin, ends=now)[0] == "/ends"
    assert refused_at(admin, ends=now + dt.timedelta(days=60))[0] == "/ends"
    assert refused_at(admin, user="nadia") == ("/user", "There is no person 'nadia'.")
    assert refused_at(admin, user="", project="nothing")[0] == "/project"
    assert refused_at(admin, user="")[0] == "/user"
    assert refused_at(admin, project="yard")[0] == "/user"
    assert not Reservation.objects.exists()


def test_administrators_reserve_and_holders_end_or_delete_their_own(
    installation: Yard, admin: User, ben: User
) -> None:
    PretendWorker(slots=4)
    with pytest.raises(Forbidden):
        reserve(ben)
    row = reserve(admin)
    other = User.objects.create(username="other")
    for change in (reservations.end_reservation, reservations.delete_reservation):
        with pytest.raises(Forbidden):
            change(row, by=other)
    with pytest.raises(StaleState, match="has not begun; delete it instead"):
        reservations.end_reservation(row, by=ben)
    reservations.delete_reservation(row, by=ben)
    with pytest.raises(NotFound):
        queries.get_reservation(row.pk)
    begun = reserve(admin, begins=None)
    with pytest.raises(Forbidden, match="has begun: end it instead"):
        reservations.delete_reservation(begun, by=ben)
    reservations.delete_reservation(begun, by=admin)
    actions = AuditEvent.objects.filter(action__startswith="reservation.").values_list("action", flat=True)
    assert sorted(actions) == [f"reservation.{verb}" for verb in ("create", "create", "delete", "delete")]


def test_a_stranger_does_not_see_for_whom_slots_are_reserved(admin: User, ben: User) -> None:
    PretendWorker(slots=4)
    reserve(admin, note="demo for a customer")
    stranger = User.objects.create(username="stranger")
    (bar,) = queries.week_for(stranger).bars
    assert (bar.holder, bar.may_end) == ("", False)
    out = queries.reservation_out(bar.row, queries.Readers.of(stranger))
    assert (out.user, out.project, out.note, out.created_by) == (None, None, "", None)
    (own,) = queries.week_for(ben).bars
    assert (own.holder, own.may_end, own.width) == ("ben", True, 6)


def test_a_limit_of_slots_holds_beside_a_reservation(installation: Yard, admin: User, ben: User) -> None:
    worker = PretendWorker(slots=4)
    person_limits.set_max_slots(installation.owner, 1, by=admin)
    reserve(admin, begins=None, user="olga")
    for _ in range(2):
        installation.submit()
    schedule.place_jobs()
    assert len(worker.claim_all()) == 1
