"""Appends rows to the audit chain and verifies it. The hash of each row covers the row before it."""

import json
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.utils.crypto import salted_hmac

from jobs import clock
from jobs.models import AuditEvent, AuditHead, Project, User

SALT = "trainyard.audit"
GENESIS = "0" * 64
HEAD_ID = 1


def record(
    action: str, target: Model | str, *, by: User | None, project: Project | None = None, **detail: Any
) -> AuditEvent:
    """Append one row to the chain, in the caller's transaction: both happen or neither does.

    Args:
        action: subject and verb, such as `job.pause`.
        target: the affected row, or a name for it, such as `model:digits`.
        by: the acting user; None for the installation itself.
        project: the project whose members may read the row.
        detail: further fields, as JSON; other values are converted by `str`.

    Raises:
        TransactionManagementError: there is no transaction around the call.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(
            "an audit row must be written in the transaction of its change"
        )
    if project is not None:
        detail["project"] = project.slug
    AuditHead.objects.get_or_create(pk=HEAD_ID, defaults={"hash": GENESIS})
    # Locked until the transaction ends, so that rows are appended one at a time.
    head = AuditHead.objects.select_for_update().get(pk=HEAD_ID)
    event = AuditEvent(
        time=clock.now(),
        actor=by,
        action=action,
        target=target if isinstance(target, str) else name_of(target),
        project=project,
        # The hash must cover the values that the database will return, such as lists instead of tuples.
        detail=json.loads(json.dumps(detail, default=str)),
        previous_hash=head.hash,
    )
    event.hash = hash_of(event)
    event.save(force_insert=True)
    head.hash, head.count = event.hash, head.count + 1
    head.save(update_fields=["hash", "count"])
    return event


def name_of(row: Model) -> str:
    """Return the name of a row in the log: its model and key, such as `job:12`."""
    return f"{row._meta.model_name}:{row.pk}"


def hash_of(event: AuditEvent) -> str:
    """Return the HMAC of a row and of the hash before it.

    The project's id is not covered, since it becomes NULL when the project is deleted; its slug is in the
    detail.
    """
    # Integers are read as floats, because PostgreSQL returns 1e20 as an integer.
    detail = json.loads(json.dumps(event.detail), parse_int=float)
    body = [
        event.previous_hash,
        event.time.isoformat(),
        event.actor_id,
        event.action,
        event.target,
        detail,
    ]
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return salted_hmac(SALT, text, algorithm="sha256").hexdigest()


def verify() -> int | None:
    """Verify the chain from its beginning; return the id of the first invalid row, or None.

    If the last rows were deleted, the id after the newest row is returned.
    """
    previous, count, last_id = GENESIS, 0, 0
    while True:
        newer = AuditEvent.objects.filter(pk__gt=last_id)
        for event in newer.order_by("pk").iterator(chunk_size=2000):
            if event.previous_hash != previous or event.hash != hash_of(event):
                return event.pk
            previous, count, last_id = event.hash, count + 1, event.pk
        head = AuditHead.objects.filter(pk=HEAD_ID).first()
        if (previous, count) == ((head.hash, head.count) if head else (GENESIS, 0)):
            return None
        # The head may already count rows that were appended after the last row was read.
        if not AuditEvent.objects.filter(pk__gt=last_id).exists():
            return last_id + 1
