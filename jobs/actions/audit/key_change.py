"""Continues the audit chain with another secret key.

A seal with a digest of all rows is the first row of the new key. The rows before stay verifiable by the
digest, for which the former key is not needed: a person who has found it out cannot change them.
"""

from collections.abc import Callable

from jobs import audit_chain, clock
from jobs.actions import own_installation
from jobs.actions.audit import audit
from jobs.audit_chain import Digest
from jobs.errors import Conflict
from jobs.models import AuditEvent
from jobs.queries.audit import audit_verification
from jobs.queries.audit.audit_verification import SEAL, Sealed, Verification

REASON = "the secret key was rotated"


def digest_before_change() -> tuple[Verification, Digest]:
    """Verify the chain and compute its digest, which may take long. No row is locked.

    Raises:
        Conflict: the chain is not valid.
    """
    verification = audit_verification.verify_chain()
    if not verification.holds:
        raise Conflict(
            f"The audit log is not valid: {verification.message} The key is not rotated, because the log "
            "could not be verified later. If that is known, accept it by `audit seal` first."
        )
    return verification, audit_verification.digest_of_all_rows()


def change_key(verification: Verification, digest: Digest, use_new_key: Callable[[], None]) -> AuditEvent:
    """Append a seal of all rows with a new key, in the caller's transaction. Return its row.

    Args:
        verification: the result before.
        digest: of the rows that were there.
        use_new_key: lets this process sign with the new key.

    Raises:
        Conflict: a row that was appended meanwhile is not valid.
    """
    head = audit.locked_head()
    if not audit_chain.is_authentic(head):
        raise Conflict("The head of the audit log was changed meanwhile. See `audit verify`.")
    for event in AuditEvent.objects.filter(number__gt=digest.last_number).order_by("number"):
        if event.hash != audit_chain.row_hash(event):
            raise Conflict(f"Row {event.pk} of the audit log is not valid. See `audit verify`.")
        digest.add(event)
    sealed = Sealed(
        found=verification.state,
        message=verification.message,
        rows=digest.rows,
        digest=digest.hex(),
        # Their anchors name rows that are all there, so they are compared as before.
        releases=_releases_of_last_seal(),
        accepted=True,
        reason=REASON,
    )
    event = AuditEvent(
        number=head.number + 1,
        time=clock.now(),
        actor=None,
        action=SEAL,
        target="audit",
        detail=sealed.model_dump(mode="json"),
        previous_hash=head.hash,
    )
    use_new_key()
    audit.append_event(event, head, authentic=True)
    own_installation.adopt_key()
    return event


def _releases_of_last_seal() -> int:
    last = AuditEvent.objects.filter(action=SEAL).order_by("-number").first()
    return Sealed.model_validate(last.detail).releases if last is not None else 0
