"""Records since when the database could be reached, so that leases count no other time.

An outage that cuts off the holders of leases, and not only one of them, also cuts off the schedulers, which
are the only ones to end an expired attempt. A scheduler that comes back sees from the row how long no
scheduler was here, whether it was running meanwhile or not, and gives all holders the time to renew.
"""

import datetime as dt

from django.db.models import Case, Exists, F, Value, When
from django.db.models.functions import Greatest

from jobs import clock
from jobs.messages.lease import LEASE_SECONDS
from jobs.models import Reachability

BREAK_SECONDS = 5.0
"""A longer time without a scheduler counts as a break. Schedulers record every two seconds."""
RENEWAL_SECONDS = LEASE_SECONDS
"""How long after a break no lease expires: a holder tries to renew at least every eight seconds."""


def record() -> None:
    """Record that the database can be reached now."""
    now = clock.now()
    had_break = When(seen__lt=now - dt.timedelta(seconds=BREAK_SECONDS), then=Value(now))
    rows = Reachability.objects.filter(pk=1)
    # Another scheduler's clock reading may be newer and already stored.
    if not rows.update(since=Case(had_break, default=F("since")), seen=Greatest(F("seen"), Value(now))):
        Reachability.objects.get_or_create(pk=1, defaults={"since": now, "seen": now})


def long_enough(now: dt.datetime) -> Exists:
    """Return a condition: leases may expire, since all holders had the time to renew them.

    Args:
        now: the time with which the leases are compared, in the same statement: the database may have been
            away between two.
    """
    return Exists(
        Reachability.objects.filter(
            since__lte=now - dt.timedelta(seconds=RENEWAL_SECONDS),
            seen__gte=now - dt.timedelta(seconds=BREAK_SECONDS),
        )
    )
