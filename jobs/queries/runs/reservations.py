"""Reads reservations of slots and GPUs, and names their holders to readers who may see them."""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import QuerySet

from jobs import access, clock
from jobs.answers.runs.reservations import ReservationOut
from jobs.errors import NotFound
from jobs.models import Job, Reservation, User, Worker
from jobs.placement import state
from jobs.placement.sentences import for_others
from jobs.queries.people.people import visible_accounts
from jobs.queries.search import search_time

_NUMBER = 0
_FOR_OTHERS = re.compile(re.escape(for_others(_NUMBER)).replace(str(_NUMBER), r"(\d{1,18})"))


def open_reservations(now: dt.datetime) -> QuerySet[Reservation]:
    """Return the reservations that have not ended, in the order of their begin."""
    rows = Reservation.objects.filter(ends__gt=now).select_related("person", "project", "created_by")
    return rows.order_by("begins", "pk")


def get_reservation(key: int) -> Reservation:
    """Return a reservation, also one that has ended.

    Raises:
        NotFound: there is none.
    """
    row = Reservation.objects.select_related("person", "project", "created_by").filter(pk=key).first()
    if row is None:
        raise NotFound(f"There is no reservation {key}.")
    return row


def listed_reservations(*, pool: str | None = None, ended: bool = False) -> QuerySet[Reservation]:
    """Return reservations, of one pool or of all.

    Args:
        pool: only this pool.
        ended: those that have ended as well.
    """
    rows = Reservation.objects.select_related("person", "project", "created_by")
    if not ended:
        rows = rows.filter(ends__gt=clock.estimate())
    return rows if pool is None else rows.filter(pool=pool)


def plain_reservation(row: Reservation) -> state.Reservation:
    """Return a reservation as the decision about placements reads it."""
    return state.Reservation(
        key=row.pk or 0,
        pool=row.pool,
        machine=row.worker,
        slots=row.slots,
        begins=row.begins.timestamp(),
        ends=row.ends.timestamp(),
        person=row.person_id,
        project=row.project_id,
        gpus=tuple(row.gpus),
    )


def workers_of_pool(pool: str) -> list[Worker]:
    """Return the live workers of a pool, with those that are draining, by name."""
    states = (Worker.State.UP, Worker.State.DRAINING)
    rows = Worker.objects.filter(pool=pool, state__in=states, lease_until__gt=clock.estimate())
    return list(rows.order_by("name", "pk"))


def may_end(user: User, row: Reservation) -> bool:
    """Return whether a user may end a reservation: administrators, and those for whom it is."""
    if not user.is_active:
        return False
    if user.is_superuser or (row.person_id is not None and row.person_id == user.pk):
        return True
    return row.project is not None and access.can(user, row.project, access.Action.MANAGE)


@dataclass(frozen=True)
class Readers:
    """Which names of holders a reader may see: those of people and projects of the reader's projects."""

    people: frozenset[int]
    projects: frozenset[int]

    @classmethod
    def of(cls, user: User) -> "Readers":
        """Return them for a reader."""
        return cls(
            frozenset({user.pk, *visible_accounts(user).values_list("pk", flat=True)}),
            frozenset(access.projects_of(user).values_list("pk", flat=True)),
        )

    def may_see(self, row: Reservation) -> bool:
        """Return whether the reader may see for whom a reservation is."""
        return row.person_id in self.people or row.project_id in self.projects


def reservation_out(row: Reservation, readers: Readers) -> ReservationOut:
    """Return a reservation's API representation for a reader."""
    is_shown = readers.may_see(row)
    return ReservationOut(
        id=row.pk,
        pool=row.pool,
        worker=row.worker or None,
        slots=row.slots,
        gpus=row.gpus,
        begins=row.begins,
        ends=row.ends,
        user=row.person.username if is_shown and row.person is not None else None,
        project=row.project.slug if is_shown and row.project is not None else None,
        note=row.note if is_shown else "",
        created_by=row.created_by.username if is_shown else None,
        created=row.created,
    )


def name_holders[K](reasons: Mapping[K, str], reader: User) -> dict[K, str]:
    """Return reasons to wait with the names of holders of reservations whom the reader may see.

    A reason is stored once for all readers, with the reservation's number in place of a name. Reasons without
    a reservation cost no statement.
    """
    numbers = {int(found[1]) for reason in set(reasons.values()) for found in _FOR_OTHERS.finditer(reason)}
    if not numbers:
        return dict(reasons)
    readers = Readers.of(reader)
    rows = Reservation.objects.filter(pk__in=numbers).select_related("person", "project")
    names = {row.pk: f"for {row.holder} (reservation {row.pk})" for row in rows if readers.may_see(row)}

    def name(found: re.Match[str]) -> str:
        return names.get(int(found[1]), found[0])

    return {key: _FOR_OTHERS.sub(name, reason) for key, reason in reasons.items()}


def longest_run(job: Job, now: dt.datetime) -> float | None:
    """Return how many seconds a job's next attempt may run, or None if nothing limits it."""
    if not job.facts.has_trials:
        # Attempts that ended count against the limit too, so this is the most.
        return None if job.max_minutes is None else job.max_minutes * search_time.SECONDS_PER_MINUTE
    try:
        return search_time.most_seconds(job, now)
    except ValueError:
        return None  # its spec is invalid, which is the reason to wait


DAYS = 7


@dataclass(frozen=True)
class Bar:
    """A reservation in the strip of a week.

    Attributes:
        row: the reservation.
        holder: for whom it is; empty if the reader may not see that.
        left: where it begins, in thousandths of the week.
        width: how long it is within the week, in thousandths.
        is_active: whether it has begun.
        may_end: whether the reader may end it, or delete it before it begins.
    """

    row: Reservation
    holder: str
    left: int
    width: int
    is_active: bool
    may_end: bool


@dataclass(frozen=True)
class Week:
    """The reservations of the next days.

    Attributes:
        days: the days, in UTC.
        bars: the reservations that have not ended, by their begin; later ones have no width.
        now: the present time, in thousandths of the week.
    """

    days: list[dt.date]
    bars: list[Bar]
    now: int


def week_for(user: User) -> Week:
    """Return the reservations that have not ended, drawn over the seven days from today on."""
    now = clock.estimate().astimezone(dt.UTC)
    start = now.replace(hour=0, minute=0, second=0, microsecond=0)
    readers = Readers.of(user)

    def place(moment: dt.datetime) -> float:
        part = (moment - start) / dt.timedelta(days=DAYS)
        return 1000 * min(max(part, 0.0), 1.0)

    bars = [
        Bar(
            row=row,
            holder=row.holder if readers.may_see(row) else "",
            left=round(place(row.begins)),
            # Of the difference: equal times are equally wide wherever they begin.
            width=round(place(row.ends) - place(row.begins)),
            is_active=row.begins <= now,
            may_end=may_end(user, row),
        )
        for row in open_reservations(now)
    ]
    return Week([(start + dt.timedelta(days=day)).date() for day in range(DAYS)], bars, round(place(now)))
