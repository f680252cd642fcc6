"""Reads a job's events and logs after a cursor."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from jobs.models import EventChunk, Job
from jobs.queries.runs.codec import Event, event_weight, unpack_events

POINTS_PER_SLICE = 20_000
"""A slice ends after about this many metric points, because it must fit into one response."""


class Slice(NamedTuple):
    """Events after a cursor, and the next slice's cursor."""

    items: list[Event]
    cursor: int


def newest_cursors(root_ids: list[int]) -> dict[int, int]:
    """Return each root job's newest cursor."""
    return dict(Job.objects.filter(pk__in=root_ids).values_list("pk", "event_seq"))


def read_events(root_id: int, *, after: int, limit: int = 500, job_id: int | None = None) -> Slice:
    """Return a root job's events that come after a cursor.

    Args:
        root_id: the root job.
        after: the previous slice's cursor, 0 for the beginning.
        limit: the most events to return. A slice also ends after `POINTS_PER_SLICE` metric points. With
            `job_id`, other jobs' events count too.
        job_id: only this child's events; the cursor still counts the root's.
    """
    chunks = EventChunk.objects.filter(root_id=root_id, last__gt=after).order_by("last")
    # A few at a time, since a slice of large chunks ends early.
    stored = chunks.values_list("data", flat=True)[:limit].iterator(chunk_size=50)
    # The first chunk may begin before the cursor.
    items = bounded_events((e for data in stored for e in unpack_events(data) if e["cursor"] > after), limit)
    # Before the filter, so that the next slice does not read the events of other jobs again.
    cursor = items[-1]["cursor"] if items else after
    if job_id is not None and job_id != root_id:
        items = [event for event in items if event.get("job") == job_id]
    return Slice(items, cursor)


def bounded_events(events: Iterable[Event], limit: int) -> list[Event]:
    """Return the first events, at most `limit`, and none after the first `POINTS_PER_SLICE` points."""
    bounded: list[Event] = []
    points = 0
    for event in events:
        bounded.append(event)
        points += event_weight(event)
        if len(bounded) >= limit or points >= POINTS_PER_SLICE:
            break
    return bounded


def read_logs(
    job: Job, *, after: int = 0, text: str = "", level: str = "", trial: int | None = None, limit: int = 200
) -> Slice:
    """Return a job's log lines after a cursor. A root's lines include its children's.

    Args:
        job: the job.
        after: the previous slice's cursor.
        text: only lines that contain this text; case is ignored.
        level: only lines with this level.
        trial: only this trial's lines.
        limit: the most lines to return.
    """
    root_id = job.root_id_or_self
    # Chunks without log lines are not read: a search has a thousand times as many metric events.
    chunks = EventChunk.objects.filter(root_id=root_id, last__gt=after, has_logs=True).order_by("last")
    lines: list[Event] = []
    cursor = after
    for data in chunks.values_list("data", flat=True).iterator(chunk_size=50):
        for event in unpack_events(data):
            if event["cursor"] <= after:
                continue
            if len(lines) >= limit:
                return Slice(lines, cursor)
            cursor = event["cursor"]
            if _matches_filters(event, job, text.casefold(), level, trial):
                lines.append(event)
    return Slice(lines, cursor)


def newest_logs(
    job: Job, *, text: str = "", level: str = "", trial: int | None = None, limit: int = 200
) -> Slice:
    """Return a job's newest log lines, oldest first. The arguments are as for `read_logs`."""
    root_id = job.root_id_or_self
    head = Job.objects.values_list("event_seq", flat=True).get(pk=root_id)
    # Without the limit, a line written since `head` was read would come again after the cursor.
    chunks = EventChunk.objects.filter(root_id=root_id, has_logs=True, last__lte=head).order_by("-last")
    lines: list[Event] = []
    for data in chunks.values_list("data", flat=True).iterator(chunk_size=50):
        matching = [e for e in unpack_events(data) if _matches_filters(e, job, text.casefold(), level, trial)]
        lines += reversed(matching)
        if len(lines) >= limit:
            break
    return Slice(lines[:limit][::-1], head)


def _matches_filters(event: dict[str, Any], job: Job, text: str, level: str, trial: int | None) -> bool:
    return (
        event["type"] == "log"
        and (job.parent_id is None or event.get("job") == job.pk)
        and (not level or event.get("level") == level)
        and (trial is None or event.get("trial") == trial)
        and (not text or text in str(event.get("line", "")).casefold())
    )
