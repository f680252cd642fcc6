"""Reads the audit log."""

from django.db.models import Q, QuerySet

from jobs import access
from jobs.answers.audit.audit import AuditEventOut, MissingOut, VerifiedOut
from jobs.models import AuditEvent, User
from jobs.queries.audit.audit_verification import Verification


def visible_events(user: User) -> QuerySet[AuditEvent]:
    """Return the rows of `user`'s actions and of the projects that they manage; all for administrators."""
    rows = AuditEvent.objects.select_related("actor", "project")
    if user.is_superuser and user.is_active:
        return rows
    return rows.filter(Q(project__in=access.projects_of(user, access.Action.MANAGE)) | Q(actor=user))


def project_events(user: User) -> QuerySet[AuditEvent]:
    """Return the rows of all projects of `user`; all rows for administrators."""
    rows = AuditEvent.objects.select_related("actor", "project")
    return rows if user.is_superuser else rows.filter(project__in=access.projects_of(user))


def filtered(
    rows: QuerySet[AuditEvent], *, actor: str = "", action: str = "", target: str = ""
) -> QuerySet[AuditEvent]:
    """Return the rows that match; `action` and `target` are prefixes. Empty values do not filter."""
    if actor:
        rows = rows.filter(actor__username=actor)
    if action:
        rows = rows.filter(action__startswith=action)
    if target:
        rows = rows.filter(target__startswith=target)
    return rows


def shown_event(event: AuditEvent) -> AuditEventOut:
    """Return the API representation of a row."""
    return AuditEventOut(
        id=event.pk,
        number=event.number,
        time=event.time,
        actor=event.actor.username if event.actor else None,
        action=event.action,
        target=event.target,
        project=event.project.slug if event.project else None,
        detail=event.detail,
        previous_hash=event.previous_hash,
        hash=event.hash,
    )


def shown_verification(found: Verification) -> VerifiedOut:
    """Return the API representation of a verification."""
    return VerifiedOut(
        holds=found.holds,
        state=found.state.value,
        message=found.message,
        broken=found.row,
        missing=MissingOut(first=found.missing[0], last=found.missing[1]) if found.missing else None,
        count=found.rows,
        notes=list(found.notes),
    )
