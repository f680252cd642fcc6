"""Operations on reservations of slots and GPUs."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import AwareDatetime, Field

from jobs.actions.runs import reservations
from jobs.actions.runs.reservations import WantedReservation
from jobs.answers.runs.reservations import ReservationOut
from jobs.queries.runs import reservations as queries
from jobs.spec.sections.resources import POOL
from webapp.api.auth import actor, needs
from webapp.api.idempotency import idempotent
from webapp.api.paging import Page, Paging, paginate
from webapp.api.shapes import Id, In

router = Router()
MOST_SLOTS = 100_000
MOST_GPUS = 256
type GpuName = Annotated[str, Field(max_length=32)]


class ReservationIn(In):
    """Slots or GPUs to keep for a person or a project: give `user` or `project`, one of them."""

    pool: str = Field("default", pattern=POOL)
    worker: str = Field(
        "", max_length=200, description="The worker's name; empty for the workers of the pool."
    )
    slots: int | None = Field(
        None, ge=1, le=MOST_SLOTS, description="How many slots; null for all, or for those of the GPUs."
    )
    gpus: list[GpuName] = Field(
        [],
        max_length=MOST_GPUS,
        description="The names of GPUs of the worker instead of any slots: jobs of others do not get these.",
        examples=[["gpu:1"]],
    )
    begins: AwareDatetime | None = Field(None, description="Null for now.")
    ends: AwareDatetime
    user: str = Field("", max_length=150, examples=["ada"])
    project: str = Field("", max_length=63)
    note: str = Field("", max_length=200)


class ReservationFilter(Schema):
    """The list's filters."""

    pool: str | None = Field(None, pattern=POOL)
    ended: bool = Field(False, description="Also those that have ended.")


@router.get("/reservations", response=Page[ReservationOut])
def list_reservations(
    request: HttpRequest, paging: Query[Paging], filters: Query[ReservationFilter]
) -> Page[ReservationOut]:
    """List the reservations of slots and GPUs."""
    readers = queries.Readers.of(actor(request))
    rows = queries.listed_reservations(pool=filters.pool, ended=filters.ended)
    return paginate(
        Page[ReservationOut],
        rows,
        paging,
        lambda row: queries.reservation_out(row, readers),
        sorts={"id": "pk", "begins": "begins"},
        default="begins",
    )


@router.post("/reservations", response={201: ReservationOut}, auth=needs("admin"))
@idempotent
def create_reservation(request: HttpRequest, body: ReservationIn) -> Status[ReservationOut]:
    """Keep slots, or GPUs of a worker, for a person or a project. For the installation's administrators.

    Jobs of others that could still run then wait, with that reason; those without a time limit count as
    running for a day. Work that runs when it begins is not ended.
    """
    row = reservations.create_reservation(WantedReservation(**dict(body)), by=actor(request))
    return Status(201, queries.reservation_out(row, queries.Readers.of(actor(request))))


@router.post("/reservations/{reservation_id}/end", response=ReservationOut, auth=needs("write", "admin"))
def end_reservation(request: HttpRequest, reservation_id: Id) -> ReservationOut:
    """End a reservation now. For administrators, and for those for whom it is."""
    row = reservations.end_reservation(queries.get_reservation(reservation_id), by=actor(request))
    return queries.reservation_out(row, queries.Readers.of(actor(request)))


@router.delete("/reservations/{reservation_id}", response={204: None}, auth=needs("write", "admin"))
def delete_reservation(request: HttpRequest, reservation_id: Id) -> Status[None]:
    """Delete a reservation. Those for whom it is may do so until it begins."""
    reservations.delete_reservation(queries.get_reservation(reservation_id), by=actor(request))
    return Status(204, None)
