"""Operations on the audit log."""

from django.http import HttpRequest
from ninja import Query, Router, Schema

from jobs import access
from jobs.answers.audit.audit import AuditEventOut, VerifiedOut
from jobs.queries.audit import audit as queries
from jobs.queries.audit.audit_verification import verify_chain
from webapp.api.auth import actor, needs
from webapp.api.paging import Page, Paging, paginate

router = Router()
BY_ID = {"id": "pk"}


class AuditFilter(Schema):
    """The list's filters."""

    action: str | None = None
    target: str | None = None
    actor: str | None = None
    project: str | None = None


@router.get("/audit", response=Page[AuditEventOut], auth=needs("read", "admin"))
def list_audit_events(
    request: HttpRequest, paging: Query[Paging], filters: Query[AuditFilter]
) -> Page[AuditEventOut]:
    """List the audit log for the caller's projects. Administrators see every row."""
    rows = queries.project_events(actor(request))
    if filters.project is not None:
        rows = rows.filter(project=access.get_project(actor(request), filters.project))
    equal = {"action": filters.action, "target": filters.target, "actor__username": filters.actor}
    rows = rows.filter(**{name: value for name, value in equal.items() if value is not None})
    return paginate(Page[AuditEventOut], rows, paging, queries.event_out, sorts=BY_ID)


@router.get("/audit/verify", response=VerifiedOut, auth=needs("admin"))
def verify_audit(request: HttpRequest) -> VerifiedOut:
    """Verify all rows' hashes, the chain's head and the anchors in signed releases."""
    access.require_admin(actor(request))
    return queries.verification_out(verify_chain())
