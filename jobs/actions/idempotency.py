"""Stores the response to a request under its `Idempotency-Key`, so that a repetition gets the same one."""

from datetime import timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import QuerySet

from jobs import clock
from jobs.errors import Conflict
from jobs.models import IdempotencyKey, User

LIFETIME = timedelta(hours=24)
STUCK_AFTER = timedelta(seconds=60)
"""After this time another request may claim an unfinished one's key, which has committed nothing."""


def in_flight() -> Conflict:
    """Return the error for a key whose first request is still running."""
    return Conflict("The first request with this Idempotency-Key is still running.", code="in_flight")


def claim(user: User, key: str, route: str, digest: str) -> tuple[IdempotencyKey, bool]:
    """Return the key's row, and whether this request must do the work.

    Raises:
        Conflict: another request with this key began and failed during this call; a third may be running.
    """
    now = clock.now()
    IdempotencyKey.objects.filter(created__lt=now - LIFETIME).delete()
    try:
        row, is_new = IdempotencyKey.objects.get_or_create(
            user=user, key=key, route=route, defaults={"body_digest": digest}
        )
    except IntegrityError as error:
        raise in_flight() from error
    if is_new:
        return row, True
    # Only for the same request: with another body, the caller refuses the key.
    stuck = IdempotencyKey.objects.filter(
        pk=row.pk, status=None, body_digest=digest, created=row.created, created__lt=now - STUCK_AFTER
    )
    # By compare-and-set on `created`: of several repetitions one does the work.
    if not stuck.update(created=now):
        return row, False
    row.created = now
    return row, True


def require_own(row: IdempotencyKey) -> None:
    """Check, in the transaction with the request's changes, that no repetition has claimed the key since.

    Raises:
        Conflict: the work before the transaction took longer than `STUCK_AFTER`; a repetition does it now.
    """
    if not _claimed_row(row).select_for_update().exists():
        raise in_flight()


def release(row: IdempotencyKey) -> None:
    """Delete a request's key if it has committed nothing, unless a repetition has claimed it since."""
    _claimed_row(row).delete()


def _claimed_row(row: IdempotencyKey) -> QuerySet[IdempotencyKey]:
    return IdempotencyKey.objects.filter(pk=row.pk, created=row.created, status=None)


def keep(row: IdempotencyKey, status: int, response: dict[str, Any]) -> None:
    """Store the response, in the transaction with the request's own changes."""
    row.status, row.response = status, response
    row.save(update_fields=["status", "response"])
