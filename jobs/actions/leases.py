"""Acquires and releases named leases. One process at a time holds each."""

import datetime as dt

from django.db.models import Q

from jobs import clock
from jobs.models import Lease


def hold(name: str, holder: str, *, seconds: float) -> bool:
    """Acquire or renew a lease. Return whether `holder` has it."""
    now = clock.now()
    until = now + dt.timedelta(seconds=seconds)
    # The update contains the condition, so only one gets the lease if several processes try at once.
    mine_or_free = Lease.objects.filter(name=name).filter(Q(holder=holder) | Q(until__lt=now))
    if mine_or_free.update(holder=holder, until=until):
        return True
    # No row: this is the first holder, or the previous one released the lease.
    _, created = Lease.objects.get_or_create(name=name, defaults={"holder": holder, "until": until})
    return created


def renew(name: str, holder: str, *, seconds: float) -> bool:
    """Renew a lease that `holder` still has. Return False if it has expired or another process holds it.

    Inside a transaction, the lease's row stays locked until the end, so no other process can acquire it.
    """
    now = clock.now()
    mine = Lease.objects.filter(name=name, holder=holder, until__gte=now)
    return bool(mine.update(until=now + dt.timedelta(seconds=seconds)))


def release(name: str, holder: str) -> None:
    """Release a lease, so that another process need not wait until it expires."""
    Lease.objects.filter(name=name, holder=holder).delete()
