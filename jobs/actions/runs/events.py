"""Appends events to a root job's log. They are numbered at commit, so all readers see one order."""

import time
from collections.abc import Sequence
from typing import Any

from django.db import connection

from jobs import hints
from jobs.models import Job
from jobs.queries.runs.codec import Event, pack_events

# Written in SQL, since building these statements from models takes longer than running them.
_NUMBER = "UPDATE jobs_job SET event_seq = event_seq + %s WHERE id = %s RETURNING event_seq"
_COUNT = "UPDATE jobs_job SET event_bytes = event_bytes + %s WHERE id = %s"
_STORE = "INSERT INTO jobs_eventchunk (root_id, first, last, has_logs, data) VALUES (%s, %s, %s, %s, %s)"


def event(
    kind: str, job: Job, *, attempt: int | None = None, trial: int | None = None, **fields: Any
) -> Event:
    """Build an event that the server itself reports."""
    body: Event = {"type": kind, "time": time.time(), "job": job.pk, "attempt": attempt or job.fence}
    if trial is not None:
        body["trial"] = trial
    return body | fields


def append(root_id: int, events: Sequence[Event], point_bytes: int = 0) -> int:
    """Number `events` and store them, inside the caller's transaction.

    Args:
        root_id: the root job.
        events: the events in order.
        point_bytes: by how many bytes the stored columns of its metric points have grown.

    Returns:
        The last event's cursor.
    """
    with connection.cursor() as cursor:
        # This locks the root's row until commit, so cursors become visible in order.
        cursor.execute(_NUMBER, [len(events), root_id])
        last = int(cursor.fetchall()[0][0])
        if not events:
            return last
        first = last - len(events) + 1
        numbered = [{"cursor": first + i, **event} for i, event in enumerate(events)]
        has_logs = any(event["type"] == "log" for event in events)
        data = pack_events(numbered)
        cursor.execute(_STORE, [root_id, first, last, has_logs, data])
        # A second update, because the cursors are part of the data. Its row is locked already.
        cursor.execute(_COUNT, [len(data) + point_bytes, root_id])
    hints.send("events", root=root_id, upto=last)
    return last
