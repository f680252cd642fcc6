"""Signs stored releases again, so that prediction servers accept them after the key was rotated."""

from jobs import signing
from jobs.messages.release import SignedRelease
from jobs.models import ReleaseRecord


def sign_anew() -> int:
    """Sign all releases with the next key, in the caller's transaction; without one, with the present key.

    Returns:
        How many have no valid signature. They stay as they are, so that the audit log still shows them.
    """
    invalid = 0
    for record in ReleaseRecord.objects.select_for_update().order_by("pk").iterator(chunk_size=500):
        signed = SignedRelease.model_validate(record.body)
        if not signing.is_signed(signed):
            invalid += 1
            continue
        record.body = signing.sign_with_next(signed.release).model_dump(mode="json")
        record.save(update_fields=["body"])
    return invalid
