"""Appends rows to the audit chain. The hash of each row covers the row before it."""

import json
import logging
from typing import Any

from django.db import transaction
from django.db.models import Max, Model

from jobs import audit_chain, clock
from jobs.actions import own_installation
from jobs.audit_chain import GENESIS, HEAD_ID
from jobs.errors import Conflict
from jobs.keys import key_ring
from jobs.models import AuditEvent, AuditHead, Project, User, WaitingAuditEvent
from jobs.queries.audit import audit_anchors, audit_verification
from jobs.queries.audit.audit_verification import SEAL, Sealed, Verification
from jobs.queries.code.installation import current_settings

log = logging.getLogger(__name__)

WAITING_FIELDS = ("time", "actor_id", "action", "target", "project_id", "detail")
"""The fields that a row has before it is in the chain."""
MOST_WAITING = 500
"""How many rows are appended in one transaction."""


def record(
    action: str, target: Model | str, *, by: User | None, project: Project | None = None, **detail: Any
) -> AuditEvent:
    """Append one row to the chain, in the caller's transaction: both happen or neither does.

    A process without the secret key, such as a worker with a home of its own, or with one that was rotated,
    leaves the row for a process that has the key (`append_waiting`). The row that it returns is not in the
    chain and has no number.

    Args:
        action: subject and verb, such as `job.pause`.
        target: the affected row, or a name for it, such as `model:digits`.
        by: the acting user; None for the installation itself. The issuers of their session are added to the
            details.
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
    if by is not None and by.login_issuers:
        # One of them may have acted as this user.
        names = User.objects.filter(pk__in=by.login_issuers).order_by("username")
        detail["login_issuers"] = list(names.values_list("username", flat=True))
    event = AuditEvent(
        time=clock.now(),
        actor=by,
        action=action,
        target=target if isinstance(target, str) else name_of(target),
        project=project,
        # The hash must cover the values that the database will return, such as lists instead of tuples.
        detail=json.loads(json.dumps(detail, default=str)),
    )
    if not (audit_chain.has_key() and _append(event)):
        WaitingAuditEvent.objects.create(**{name: getattr(event, name) for name in WAITING_FIELDS})
    return event


def append_waiting() -> int:
    """Append the rows that processes without the secret key have left, oldest first. Return how many."""
    if not audit_chain.has_key() or not WaitingAuditEvent.objects.exists():
        return 0
    with transaction.atomic():
        # The head is locked first, as by every other row, so that two processes append none twice.
        if not _may_sign(locked_head()):
            return 0
        waiting = list(WaitingAuditEvent.objects.order_by("pk")[:MOST_WAITING])
        for row in waiting:
            _append(AuditEvent(**{name: getattr(row, name) for name in WAITING_FIELDS}))
        WaitingAuditEvent.objects.filter(pk__in=[row.pk for row in waiting]).delete()
    return len(waiting)


def _append(event: AuditEvent) -> bool:
    """Give an event its number and its hash, and append it. Return whether this process has the key."""
    head = locked_head()
    if not _may_sign(head):
        return False
    # A head that is not authentic must not become so by the next row: it would hide that rows are missing.
    authentic = audit_chain.is_authentic(head)
    event.number, event.previous_hash = head.number + 1, head.hash
    append_event(event, head, authentic=authentic)
    return True


def _may_sign(head: AuditHead) -> bool:
    """Return whether this process has the key of the last row. A rotated key is learned here at last."""
    if head.key == audit_chain.key_id():
        return True
    # Its key was lost, and this one was accepted; or this process has a key from before a rotation.
    named = current_settings().key
    return not named or key_ring.adopt(named)


def log_anchor() -> None:
    """Write the last row's number and hash to the log, which may be kept on another machine."""
    log.info("audit anchor %s", audit_anchors.current_anchor().model_dump_json())


def name_of(row: Model) -> str:
    """Return a row's name in the log: its model and key, such as `job:12`."""
    return f"{row._meta.model_name}:{row.pk}"


def seal_chain(reason: str, *, by: User | None) -> Verification:
    """Begin a new chain after the present rows, which are kept as they are.

    The seal is a row with the result of the last verification and with a digest of all rows before it, so
    that these cannot change any more. Rows after it are verified with the present secret key.

    Args:
        reason: the operator's explanation.
        by: the acting user; None at the terminal.

    Returns:
        The result before the seal.

    Raises:
        Conflict: the chain is valid, so there is nothing to accept.
    """
    with transaction.atomic():
        # Before the head is locked, which creates it if it was deleted.
        verification = audit_verification.verify_chain()
        if verification.holds:
            raise Conflict("The audit chain is valid. There is nothing to seal.")
        head = locked_head()
        digest = audit_verification.digest_of_all_rows()
        sealed = Sealed(
            found=verification.state,
            message=verification.message,
            rows=digest.rows,
            digest=digest.hex(),
            releases=audit_anchors.newest_release_id(),
            accepted=True,
            reason=reason,
        )
        # The numbers of missing rows are not used again: copies of the head may name them.
        last_missing = verification.missing[1] if verification.missing else 0
        event = AuditEvent(
            number=max(head.number, last_missing, digest.last_number) + 1,
            time=clock.now(),
            actor=by,
            action=SEAL,
            target="audit",
            detail=sealed.model_dump(mode="json"),
            previous_hash=head.hash,
        )
        append_event(event, head, authentic=True)
        own_installation.adopt_key()
    return verification


def locked_head() -> AuditHead:
    """Return the head, locked until the transaction ends, so that rows are appended one at a time."""
    heads = AuditHead.objects.select_for_update().filter(pk=HEAD_ID)
    return heads.first() or _new_head()


def _new_head() -> AuditHead:
    """Create an empty chain's head. If there are rows, the head was deleted and is not authentic."""
    last = AuditEvent.objects.order_by("number").last()
    number, last_hash = (last.number, last.hash) if last else (0, GENESIS)
    AuditHead.objects.get_or_create(
        pk=HEAD_ID,
        defaults={
            "number": number,
            "hash": last_hash,
            "mac": "" if last else audit_chain.head_mac(number, last_hash),
            "key": audit_chain.key_id(),
        },
    )
    # Another transaction may have created it first.
    return AuditHead.objects.select_for_update().get(pk=HEAD_ID)


def append_event(event: AuditEvent, head: AuditHead, *, authentic: bool) -> None:
    """Append an event that has its number, and let the locked head name it."""
    # The id is covered by the hash, so it must be known before. It is not below the number, so that ids of
    # rows that are missing are not given again.
    last_id = AuditEvent.objects.aggregate(last=Max("pk"))["last"] or 0
    event.pk = max(last_id + 1, event.number)
    event.hash = audit_chain.row_hash(event)
    event.save(force_insert=True)
    head.number, head.hash = event.number, event.hash
    head.mac = audit_chain.head_mac(head.number, head.hash) if authentic else ""
    if authentic:
        head.key = audit_chain.key_id()
    head.save(update_fields=["number", "hash", "mac", "key"])
