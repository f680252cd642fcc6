"""Creates, ends and deletes reservations of slots."""

import datetime as dt

from django.db import transaction

from jobs import access, clock, hints
from jobs.actions.audit import audit
from jobs.actions.people.people import find_person
from jobs.errors import BadInput, Forbidden, NotFound, StaleState
from jobs.models import InstallationSettings, Project, Reservation, User
from jobs.placement.reservations import first_conflict
from jobs.placement.sentences import format_slots, format_time
from jobs.queries.code.installation import KEY
from jobs.queries.runs.reservations import may_end, plain_reservation, sizes_of_pool
from jobs.spec.problems import Problem

LONGEST = dt.timedelta(days=31)
FARTHEST = dt.timedelta(days=366)
LATE = dt.timedelta(minutes=5)
"""A begin that is past by no more than this is taken for now: a form is filled in slowly."""


def create_reservation(
    *,
    pool: str,
    begins: dt.datetime | None,
    ends: dt.datetime,
    worker: str = "",
    slots: int | None = None,
    user: str = "",
    project: str = "",
    note: str = "",
    by: User,
) -> Reservation:
    """Keep slots of a worker or a pool for a person or a project.

    Args:
        pool: the pool.
        begins: its begin; None means now.
        ends: its end.
        worker: the name of one worker of the pool; empty for all.
        slots: how many slots; None for all.
        user: the name of the person for whom it is; or else
        project: the slug of the project for which it is.
        note: for readers.
        by: an administrator of the installation.

    Raises:
        Forbidden: `by` is not an administrator of the installation.
        BadInput: a value is invalid, or other reservations leave too few slots.
    """
    access.require_admin(by)
    now = clock.now()
    begins = now if begins is None or now - LATE <= begins < now else begins
    _require_time(begins, ends, now)
    person, for_project = _find_holder(user, project, by)
    row = Reservation(
        pool=pool,
        worker=worker,
        slots=slots,
        begins=begins,
        ends=ends,
        person=person,
        project=for_project,
        note=note,
        created_by=by,
    )
    with transaction.atomic():
        # Two reservations at the same time must see each other, and there may be no row to lock yet.
        InstallationSettings.objects.get_or_create(pk=KEY)
        InstallationSettings.objects.select_for_update(no_key=True).get(pk=KEY)
        _require_slots(row)
        row.save()
        audit.record(
            "reservation.create",
            f"reservation:{row.pk}",
            by=by,
            project=for_project,
            pool=pool,
            worker=worker,
            slots=slots,
            begins=begins,
            ends=ends,
            person=user,
        )
        hints.send("schedule")
    return row


def end_reservation(row: Reservation, *, by: User) -> Reservation:
    """End a reservation now, so that others may use the slots. It stays in the list of past ones.

    Raises:
        Forbidden: it is for another person or project, and `by` is not an administrator of the installation.
        StaleState: it has not begun, or has ended.
    """
    _require_right(row, by)
    with transaction.atomic():
        now = clock.now()
        if not Reservation.objects.filter(pk=row.pk, begins__lt=now, ends__gt=now).update(ends=now):
            has_ended = row.ends <= now
            raise StaleState(
                f"reservation {row.pk} has already ended"
                if has_ended
                else f"reservation {row.pk} has not begun; delete it instead"
            )
        row.refresh_from_db()
        audit.record("reservation.end", f"reservation:{row.pk}", by=by, project=row.project)
        hints.send("schedule")
    return row


def delete_reservation(row: Reservation, *, by: User) -> None:
    """Delete a reservation. Those for whom it is may delete it until it begins.

    Raises:
        Forbidden: `by` may not delete it.
        NotFound: it was deleted meanwhile.
    """
    _require_right(row, by)
    if row.begins <= clock.now() and not by.is_superuser:
        raise Forbidden(f"Reservation {row.pk} has begun: end it instead.")
    with transaction.atomic():
        key, project = row.pk, row.project
        gone, _ = Reservation.objects.filter(pk=key).delete()
        if not gone:
            raise NotFound(f"There is no reservation {key}.")
        audit.record("reservation.delete", f"reservation:{key}", by=by, project=project)
        hints.send("schedule")


def _require_right(row: Reservation, by: User) -> None:
    if not may_end(by, row):
        raise Forbidden("Administrators of the installation and those for whom it is may end a reservation.")


def _require_time(begins: dt.datetime, ends: dt.datetime, now: dt.datetime) -> None:
    if begins < now:
        raise _bad("/begins", f"{_text(begins)} is past; the time now is {_text(now)}")
    if begins > now + FARTHEST:
        raise _bad("/begins", f"{_text(begins)} is more than a year away")
    if ends <= begins:
        raise _bad("/ends", f"{_text(ends)} is not after the begin, {_text(begins)}")
    if ends - begins > LONGEST:
        raise _bad("/ends", f"{_text(ends)} is more than {LONGEST.days} days after {_text(begins)}")


def _find_holder(user: str, project: str, by: User) -> tuple[User | None, Project | None]:
    if bool(user) == bool(project):
        raise _bad("/user", "give the person or the project for which it is, one of them")
    try:
        return (find_person(user), None) if user else (None, access.get_project(by, project))
    except NotFound as error:
        raise _bad("/user" if user else "/project", error.message) from error


def _require_slots(row: Reservation) -> None:
    """Require that the worker or pool has the slots, beside other reservations."""
    machines = sizes_of_pool(row.pool)
    if not machines:
        raise _bad("/pool", f"no worker runs in pool {row.pool!r}")
    own = [machine for machine in machines if row.worker in ("", machine.name)]
    if not own:
        names = ", ".join(machine.name for machine in machines[:10])
        raise _bad("/worker", f"no worker {row.worker!r} runs in pool {row.pool!r}; there are {names}")
    total = sum(machine.slots for machine in own)
    if row.slots is not None and not 1 <= row.slots <= total:
        raise _bad("/slots", f"{row.slots} is not from 1 to {total}, the slots that there are")
    others = [
        plain_reservation(other)
        for other in Reservation.objects.filter(pool=row.pool, ends__gt=row.begins, begins__lt=row.ends)
    ]
    conflict = first_conflict(plain_reservation(row), others, machines)
    if conflict is not None:
        what = "all slots" if conflict.slots is None else format_slots(conflict.slots)
        where = f"worker {conflict.machine}" if conflict.machine else f"pool {conflict.pool}"
        raise _bad(
            "/begins",
            f"too few slots are left by reservation {conflict.key}: {what} of {where} from "
            f"{format_time(conflict.begins)} to {format_time(conflict.ends)}",
        )


def _text(moment: dt.datetime) -> str:
    # As it came in: the first and the last years cannot be converted to another zone.
    return moment.isoformat(sep=" ", timespec="minutes")


def _bad(pointer: str, message: str) -> BadInput:
    return BadInput(message, [Problem(pointer, message)])
