"""Limits how many slots a person's jobs hold at once. Only installation administrators may."""

from django.db import transaction

from jobs import access, hints
from jobs.actions.audit import audit
from jobs.errors import BadInput
from jobs.models import User
from jobs.spec.problems import Problem

HIGHEST = 100_000


def set_max_slots(user: User, limit: int | None, *, by: User) -> User:
    """Set the most slots that a person's jobs hold at once. Runs that exceed it continue.

    Args:
        user: the person; the row is refreshed.
        limit: the number; None means no limit.
        by: an administrator of the installation.

    Raises:
        Forbidden: `by` is not an administrator of the installation.
        BadInput: the number is less than one or too large.
    """
    access.require_admin(by)
    if limit is not None and not 1 <= limit <= HIGHEST:
        message = f"{limit} is not from 1 to {HIGHEST:,}; null means no limit"
        raise BadInput(message, [Problem("/max_slots", message)])
    with transaction.atomic():
        current = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if current.max_slots != limit:
            User.objects.filter(pk=user.pk).update(max_slots=limit)
            audit.record("person.max_slots", user, by=by, name=user.username, slots=limit)
            hints.send("schedule")
        user.refresh_from_db()
    return user
