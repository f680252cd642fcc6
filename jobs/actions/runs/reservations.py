"""Creates, ends and deletes reservations of slots and GPUs."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from jobs import access, clock, hints
from jobs.actions.audit import audit
from jobs.actions.people.people import find_person
from jobs.errors import BadInput, Forbidden, NotFound, StaleState
from jobs.models import InstallationSettings, Project, Reservation, User, Worker
from jobs.placement import state
from jobs.placement.reservations import Size, first_conflict, first_gpu_conflict
from jobs.placement.sentences import format_slots, format_time
from jobs.queries.code.installation import KEY
from jobs.queries.runs.reservations import may_end, plain_reservation, workers_of_pool
from jobs.spec.checks.gpu_memory import KEEPS_RESERVED_GPUS, is_gpu, places_of_gpu
from jobs.spec.problems import Problem

LONGEST = dt.timedelta(days=31)
FARTHEST = dt.timedelta(days=366)
LATE = dt.timedelta(minutes=5)
"""A begin that is past by no more than this is taken for now: a form is filled in slowly."""


@dataclass(frozen=True)
class WantedReservation:
    """Slots or GPUs that are to be kept for a person or a project.

    Attributes:
        pool: the pool.
        begins: its begin; None means now.
        ends: its end.
        worker: the name of one worker of the pool; empty for all.
        slots: how many slots; None for all.
        gpus: the names of GPUs of the worker, such as `gpu:1`, instead of any slots.
        user: the name of the person for whom it is; or else
        project: the slug of the project for which it is.
        note: for readers.
    """

    pool: str
    begins: dt.datetime | None
    ends: dt.datetime
    worker: str = ""
    slots: int | None = None
    gpus: Sequence[str] = ()
    user: str = ""
    project: str = ""
    note: str = ""


def create_reservation(wanted: WantedReservation, *, by: User) -> Reservation:
    """Keep slots of a worker or a pool, or GPUs of a worker, for a person or a project.

    Raises:
        Forbidden: `by` is not an administrator of the installation.
        BadInput: a value is invalid, or other reservations leave too few slots or have the same GPU.
    """
    access.require_admin(by)
    row = _new_row(wanted, by)
    with transaction.atomic():
        # Two reservations at the same time must see each other, and there may be no row to lock yet.
        InstallationSettings.objects.get_or_create(pk=KEY)
        InstallationSettings.objects.select_for_update(no_key=True).get(pk=KEY)
        _require_room(row)
        row.save()
        kept = {name: getattr(row, name) for name in ("pool", "worker", "slots", "gpus", "begins", "ends")}
        subject = f"reservation:{row.pk}"
        audit.record("reservation.create", subject, by=by, project=row.project, person=wanted.user, **kept)
        hints.send("schedule")
    return row


def _new_row(wanted: WantedReservation, by: User) -> Reservation:
    now = clock.now()
    begins = now if wanted.begins is None or now - LATE <= wanted.begins < now else wanted.begins
    _require_time(begins, wanted.ends, now)
    person, project = _find_holder(wanted.user, wanted.project, by)
    return Reservation(
        pool=wanted.pool,
        worker=wanted.worker,
        slots=wanted.slots,
        gpus=list(wanted.gpus),
        begins=begins,
        ends=wanted.ends,
        person=person,
        project=project,
        note=wanted.note,
        created_by=by,
    )


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


def _require_room(row: Reservation) -> None:
    """Require that the worker or pool has the slots or GPUs, beside other reservations."""
    workers = workers_of_pool(row.pool)
    if not workers:
        raise _bad("/pool", f"no worker runs in pool {row.pool!r}")
    own = [worker for worker in workers if row.worker in ("", worker.name)]
    if not own:
        names = ", ".join(worker.name for worker in workers[:10])
        raise _bad("/worker", f"no worker {row.worker!r} runs in pool {row.pool!r}; there are {names}")
    if row.gpus:
        row.slots = _slots_of_gpus(row, own)
    total = sum(worker.slots for worker in own)
    if row.slots is not None and not 1 <= row.slots <= total:
        raise _bad("/slots", f"{row.slots} is not from 1 to {total}, the slots that there are")
    _require_no_conflict(row, [Size(worker.pk, worker.name, worker.slots) for worker in workers])


def _slots_of_gpus(row: Reservation, workers: Sequence[Worker]) -> int:
    """Return how many slots the GPUs have that are to be reserved, of the worker with their name."""
    if row.slots is not None:
        raise _bad("/slots", "a reservation of GPUs has their slots; leave the number of slots out")
    if not row.worker:
        raise _bad("/worker", "name the worker whose GPUs these are")
    if len(set(row.gpus)) < len(row.gpus):
        raise _bad("/gpus", "a GPU is named twice")
    worker = workers[0]
    present = [str(device["name"]) for device in worker.devices if is_gpu(device)]
    for gpu in row.gpus:
        if gpu not in present:
            there = f"its GPUs are {', '.join(present)}" if present else "it has no GPU"
            raise _bad("/gpus", f"worker {worker.name} has no {gpu!r}; {there}")
    if not worker.info.get(KEEPS_RESERVED_GPUS):
        raise _bad(
            "/gpus",
            f"worker {worker.name} runs an earlier release, which cannot keep single GPUs; update it, or "
            "reserve slots",
        )
    return min(len(row.gpus) * places_of_gpu(worker.slots, len(present)), worker.slots)


def _require_no_conflict(row: Reservation, machines: Sequence[Size]) -> None:
    found = Reservation.objects.filter(pool=row.pool, ends__gt=row.begins, begins__lt=row.ends)
    new, others = plain_reservation(row), [plain_reservation(other) for other in found]
    if (same := first_gpu_conflict(new, others)) is not None:
        conflict, gpu = same
        text = f"{gpu} of worker {row.worker} is reserved by reservation {conflict.key}"
        raise _bad("/gpus", f"{text} {_times(conflict)}")
    if (lacking := first_conflict(new, others, machines)) is not None:
        what = "all slots" if lacking.slots is None else format_slots(lacking.slots)
        where = f"worker {lacking.machine}" if lacking.machine else f"pool {lacking.pool}"
        text = f"too few slots are left by reservation {lacking.key}: {what} of {where}"
        raise _bad("/begins", f"{text} {_times(lacking)}")


def _times(row: state.Reservation) -> str:
    return f"from {format_time(row.begins)} to {format_time(row.ends)}"


def _text(moment: dt.datetime) -> str:
    # As it came in: the first and the last years cannot be converted to another zone.
    return moment.isoformat(sep=" ", timespec="minutes")


def _bad(pointer: str, message: str) -> BadInput:
    return BadInput(message, [Problem(pointer, message)])
