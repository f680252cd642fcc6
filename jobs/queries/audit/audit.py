"""Reads the audit log."""

from django.db.models import Q, QuerySet

from jobs import access
from jobs.answers.audit.audit import AuditEventOut, MissingOut, VerifiedOut
from jobs.models import AuditEvent, User
from jobs.queries.audit.audit_verification import Verification


def visible_events(user: User) -> QuerySet[AuditEvent]:
    """Return the rows about `user`'s actions and managed projects. Administrators see all."""
    rows = AuditEvent.objects.select_related("actor", "project")
    if user.is_superuser and user.is_active:
        return rows
    return rows.filter(Q(project__in=access.projects_of(user, access.Action.MANAGE)) | Q(actor=user))


def project_events(user: User) -> QuerySet[AuditEvent]:
    """Return the rows about all projects of `user`. Administrators see all."""
    rows = AuditEvent.objects.select_related("actor", "project")
    return rows if user.is_superuser else rows.filter(project__in=access.projects_of(user))


def filter_events(
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


def event_out(event: AuditEvent) -> AuditEventOut:
    """Return a row's API representation."""
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


def verification_out(verification: Verification) -> VerifiedOut:
    """Return a verification's API representation."""
    missing = verification.missing
    return VerifiedOut(
        holds=verification.holds,
        state=verification.state.value,
        message=verification.message,
        broken=verification.row,
        missing=MissingOut(first=missing[0], last=missing[1]) if missing else None,
        count=verification.rows,
        notes=list(verification.notes),
    )
