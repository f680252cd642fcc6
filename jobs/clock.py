"""Reads the time from the database, so that all machines compare leases with one clock."""

import datetime as dt
import time

from django.db import connection
from django.utils import timezone

MEASURED_SECONDS = 60.0
"""How long `estimate` uses a measured offset."""

_offset: tuple[float, dt.timedelta] | None = None
"""The last measurement's monotonic time, and the database's time minus this machine's."""


def now() -> dt.datetime:
    """Return the current time of PostgreSQL; with SQLite, of this machine."""
    if connection.vendor != "postgresql":
        # SQLite has no server with its own clock.
        return timezone.now()
    with connection.cursor() as cursor:
        # Not now(), which is the time at which the transaction began: a lease may have expired since.
        cursor.execute("SELECT clock_timestamp()")
        value: dt.datetime = cursor.fetchone()[0]
    return value


def seconds_from_now(seconds: float) -> dt.datetime:
    """Return the time in `seconds` from now."""
    return now() + dt.timedelta(seconds=seconds)


def estimate() -> dt.datetime:
    """Return `now()` with an error of a few milliseconds and at most one query per minute and process.

    For reads only. Writes that decide about a lease use `now`.
    """
    if connection.vendor != "postgresql":
        return now()
    global _offset
    if _offset is None or time.monotonic() - _offset[0] > MEASURED_SECONDS:
        before = timezone.now()
        database_time = now()
        # Assume that the server read its clock in the middle of the round trip.
        middle = before + (timezone.now() - before) / 2
        _offset = time.monotonic(), database_time - middle
    return timezone.now() + _offset[1]
