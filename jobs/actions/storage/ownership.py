"""Gives the artifact store its owner."""

from django.db import transaction

from jobs.actions import own_installation
from jobs.actions.audit import audit
from jobs.models import Lease
from jobs.queries.storage import ownership
from jobs.store import store


def settle() -> str | None:
    """Give a store without an owner to this installation.

    Returns:
        Why the store is only read, in sentences; None if it is this installation's.

    Raises:
        OSError: the store does not answer. A later start repeats this.
    """
    identity = own_installation.ensured_row().identity
    if (sentence := ownership.problem()) is not None:
        return sentence
    if ownership.read_mark(is_copy=False).owner is None:
        store().set_owner(identity)
    _forget_copy()
    return None


def adopt() -> str | None:
    """Let the store belong to this installation; return its former owner's identity, if it had another.

    Raises:
        OSError: the store does not answer.
    """
    identity = own_installation.ensured_row().identity
    owner = ownership.read_mark(is_copy=False).owner
    # The file first: after a kill in between, the command is repeated.
    store().set_owner(identity)
    with transaction.atomic():
        _forget_copy()
        if owner != identity:
            audit.record("storage.adopt", "storage", by=None, owner=identity, was=owner or "")
    return None if owner == identity else owner


def _forget_copy() -> None:
    Lease.objects.filter(name=ownership.RESTORED).delete()
    ownership.forget()
