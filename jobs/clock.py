"""Time by the database's clock: leases of many machines are compared with one clock."""

import datetime as dt

from django.db import connection
from django.utils import timezone


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
