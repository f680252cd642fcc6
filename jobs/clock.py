"""Time by the database's clock: leases of many machines are compared with one clock."""

import datetime as dt
import time

from django.db import connection
from django.utils import timezone

MEASURED_SECONDS = 60.0

_offset: tuple[float, dt.timedelta] | None = None
"""When the database's clock was read, by the monotonic clock, and how far it was ahead of this machine's."""


def now() -> dt.datetime:
    """Return the current time; PostgreSQL's own clock, or this machine's beside SQLite."""
    if connection.vendor != "postgresql":
        return timezone.now()  # SQLite is a file of this machine: its clock is ours
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        value: dt.datetime = cursor.fetchone()[0]
    return value


def seconds_from_now(seconds: float) -> dt.datetime:
    """Return the time that many seconds ahead."""
    return now() + dt.timedelta(seconds=seconds)


def estimate() -> dt.datetime:
    """Return `now()` to a few milliseconds, with one query a minute and process at most.

    For reads, which would else pay a query each time. Writes that decide who holds a lease use `now`.
    """
    if connection.vendor != "postgresql":
        return now()
    global _offset
    if _offset is None or time.monotonic() - _offset[0] > MEASURED_SECONDS:
        before = timezone.now()
        read = now()
        _offset = time.monotonic(), read - (before + (timezone.now() - before) / 2)
    return timezone.now() + _offset[1]
