"""Who did what to which thing, and whether the chain of it holds."""

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Query, Router, Schema

from jobs import access
from jobs.actions import audit
from jobs.models import AuditEvent, User
from jobs.queries import audit as queries
from webapp.api.auth import actor, needs
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import Json, Time, username

router = Router()
BY_ID = {"id": "pk"}


class AuditOut(Schema):
    """One row of the chain; `hash` covers the row and the hash before it."""

    id: int
    time: Time
    actor: str | None
    action: str
    target: str
    project: str | None
    detail: Json
    previous_hash: str
    hash: str


class AuditFilter(Schema):
    """`?action=&target=&actor=&project=`."""

    action: str | None = None
    target: str | None = None
    actor: str | None = None
    project: str | None = None


class Verified(Schema):
    """Whether the chain holds; if not, the first row that does not."""

    holds: bool
    broken: int | None
    count: int


def _shown(event: AuditEvent) -> Json:
    return {
        "id": event.pk,
        "time": event.time,
        "actor": username(event.actor),
        "action": event.action,
        "target": event.target,
        "project": event.project.slug if event.project else None,
        "detail": event.detail,
        "previous_hash": event.previous_hash,
        "hash": event.hash,
    }


@router.get("/audit", response=Page[AuditOut], auth=needs("read", "admin"))
def list_audit(request: HttpRequest, paging: Query[Paging], wanted: Query[AuditFilter]) -> Page[Json]:
    """List what happened in your projects; everything, for an administrator."""
    return cut(_rows(actor(request), wanted), paging, _shown, sorts=BY_ID)


def _rows(user: User, wanted: AuditFilter) -> QuerySet[AuditEvent]:
    rows = queries.project_events(user)
    if wanted.project is not None:
        rows = rows.filter(project=access.get_project(user, wanted.project))
    equal = {"action": wanted.action, "target": wanted.target, "actor__username": wanted.actor}
    return rows.filter(**{name: value for name, value in equal.items() if value is not None})


@router.get("/audit/verify", response=Verified, auth=needs("admin"))
def verify(request: HttpRequest) -> Json:
    """Walk the whole chain."""
    access.require_admin(actor(request))
    broken = audit.verify()
    return {"holds": broken is None, "broken": broken, "count": queries.count()}
