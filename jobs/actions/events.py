"""Appends to a root job's list of events: append-only, numbered at commit, one order for all readers."""

import time
from collections.abc import Sequence
from typing import Any

from django.db.models import F

from jobs import hints
from jobs.models import EventChunk, Job
from jobs.queries.chunks import Event, pack_events


def event(
    kind: str, job: Job, *, attempt: int | None = None, trial: int | None = None, **fields: Any
) -> Event:
    """Build an event of the server's own making."""
    body: Event = {"type": kind, "time": time.time(), "job": job.pk, "attempt": attempt or job.fence}
    if trial is not None:
        body["trial"] = trial
    return body | fields


def append(root_id: int, events: Sequence[Event]) -> int:
    """Number `events` and store them, inside the caller's transaction.

    The update of the counter locks the root's row until commit, so cursors become visible in order.

    Returns:
        The cursor of the last event.
    """
    Job.objects.filter(pk=root_id).update(event_seq=F("event_seq") + len(events))
    last: int = Job.objects.values_list("event_seq", flat=True).get(pk=root_id)
    if not events:
        return last
    first = last - len(events) + 1
    numbered = [{"cursor": first + i, **event} for i, event in enumerate(events)]
    EventChunk.objects.create(
        root_id=root_id,
        first=first,
        last=last,
        has_logs=any(event["type"] == "log" for event in events),
        data=pack_events(numbered),
    )
    hints.send("events", root=root_id, upto=last)
    return last
