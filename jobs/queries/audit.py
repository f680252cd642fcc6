"""The audit log as people read it."""

from django.db.models import Q, QuerySet

from jobs import access
from jobs.models import AuditEvent, User


def visible_events(user: User) -> QuerySet[AuditEvent]:
    """Return the rows `user` may read: one's own and those of projects one manages; an admin all."""
    rows = AuditEvent.objects.select_related("actor", "project")
    if user.is_superuser and user.is_active:
        return rows
    managed = [p for p in access.projects_of(user) if access.can(user, p, access.Action.MANAGE)]
    return rows.filter(Q(project__in=managed) | Q(actor=user))


def filtered(
    rows: QuerySet[AuditEvent], *, actor: str = "", action: str = "", target: str = ""
) -> QuerySet[AuditEvent]:
    """Narrow the log down; `action` and `target` match from their beginning."""
    if actor:
        rows = rows.filter(actor__username=actor)
    if action:
        rows = rows.filter(action__startswith=action)
    if target:
        rows = rows.filter(target__startswith=target)
    return rows
