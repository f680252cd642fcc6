"""Replaces the key that signs releases. Prediction servers trust both keys for a while.

The public file names the next key first; then stored releases are signed with it; then it is the present one.
Each step may be repeated, so the rotation may be killed at any moment.
"""

from django.db import transaction

from jobs import signing
from jobs.actions.audit import audit
from jobs.actions.registry import release_keys
from jobs.queries.audit import audit_verification
from webapp.ops.errors import OpsError


def prepare() -> str:
    """Make the next key, and add it to the public file. Return its name."""
    return signing.prepare_next()


def rotate() -> int:
    """Sign with the next key, and all stored releases again.

    Returns:
        How many releases were signed with a key that is gone. They stay as they are.

    Raises:
        OpsError: the audit log, or a release, is not valid.
    """
    _require_valid_log()
    former, key = signing.key_id(), signing.prepare_next()
    with transaction.atomic():
        invalid = release_keys.sign_anew()
        audit.record("keys.rotate_release_key", "installation", by=None, key=key, former=former)
    signing.use_next()
    return invalid


def forget() -> int:
    """Remove former keys from the public file. Returns and raises as `rotate`, also if there is none."""
    if not signing.former_keys():
        raise OpsError("There is no former key of releases.")
    _require_valid_log()
    with transaction.atomic():
        # A release may have been signed with the former key while it was replaced.
        invalid = release_keys.sign_anew()
        audit.record("keys.forget_release_key", "installation", by=None)
    # Afterwards: without the key, its signatures could not be verified.
    signing.forget_former()
    return invalid


def _require_valid_log() -> None:
    # A fault could not be found any more after the key is forgotten.
    verification = audit_verification.verify_chain()
    if not verification.holds:
        raise OpsError(
            f"The audit log is not valid: {verification.message} The key is not rotated. If that is known, "
            "accept it by `audit seal` first."
        )
