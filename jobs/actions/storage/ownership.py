"""Gives the installation its identity, and the artifact store its owner."""

import uuid

from django.db import transaction

from jobs.actions.audit import audit
from jobs.models import InstallationSettings, Lease
from jobs.queries.code.installation import KEY
from jobs.queries.storage import ownership
from jobs.store import store


def settle() -> str | None:
    """Give a new installation an identity, and a store without an owner to this installation.

    Returns:
        Why the store is only read, in sentences; None if it is this installation's.

    Raises:
        OSError: the store does not answer. A later start repeats this.
    """
    identity = _ensure_identity()
    if (sentence := ownership.problem()) is not None:
        return sentence
    if ownership.read_owner() is None:
        store().set_owner(identity)
    _forget_copy()
    return None


def adopt() -> str | None:
    """Let the store belong to this installation; return its former owner's identity, if it had another.

    Raises:
        OSError: the store does not answer.
    """
    identity = _ensure_identity()
    owner = ownership.read_owner()
    # The file first: after a kill in between, the command is repeated.
    store().set_owner(identity)
    with transaction.atomic():
        _forget_copy()
        if owner != identity:
            audit.record("storage.adopt", "storage", by=None, owner=identity, was=owner or "")
    return None if owner == identity else owner


def _ensure_identity() -> str:
    with transaction.atomic():
        InstallationSettings.objects.get_or_create(pk=KEY)
        # Locked: several web servers may be prepared at the same time.
        row = InstallationSettings.objects.select_for_update(no_key=True).get(pk=KEY)
        identity, _ = ownership.identity()
        row.identity = identity or uuid.uuid4().hex
        row.save(update_fields=["identity"])
    return row.identity


def _forget_copy() -> None:
    Lease.objects.filter(name=ownership.RESTORED).delete()
    ownership.forget()
