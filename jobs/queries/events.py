"""Reads a job's events and logs: one list, one order, from any cursor on."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from jobs.models import EventChunk, Job
from jobs.queries.codec import Event, unpack_events, weight

POINTS_A_SLICE = 20_000
"""A slice ends after about as many metric points: what is read at once must fit into an answer."""


class Slice(NamedTuple):
    """Events after a cursor, and the cursor to ask from next."""

    items: list[Event]
    cursor: int


def head(root_ids: list[int]) -> dict[int, int]:
    """Return the newest cursor of each root job."""
    return dict(Job.objects.filter(pk__in=root_ids).values_list("pk", "event_seq"))


def read(root_id: int, *, after: int, limit: int = 500, job_id: int | None = None) -> Slice:
    """Return up to about `limit` events of a root's list that come after the cursor `after`.

    Args:
        root_id: the root job.
        after: a cursor that an earlier slice gave, 0 for the beginning.
        limit: the bound; a slice also ends after `POINTS_A_SLICE` metric points. With `job_id` it bounds the
            events looked at.
        job_id: only this job's events (a child's); the cursor still counts the root's.
    """
    chunks = EventChunk.objects.filter(root_id=root_id, last__gt=after).order_by("last")
    stored = chunks.values_list("data", flat=True)[:limit].iterator(chunk_size=50)
    items = bounded((e for data in stored for e in unpack_events(data) if e["cursor"] > after), limit)
    cursor = items[-1]["cursor"] if items else after
    if job_id is not None and job_id != root_id:
        items = [event for event in items if event.get("job") == job_id]
    return Slice(items, cursor)


def bounded(events: Iterable[Event], limit: int) -> list[Event]:
    """Return the first events: `limit` at most, and none after the first `POINTS_A_SLICE` points."""
    found: list[Event] = []
    points = 0
    for event in events:
        found.append(event)
        points += weight(event)
        if len(found) >= limit or points >= POINTS_A_SLICE:
            break
    return found


def logs(
    job: Job, *, after: int = 0, text: str = "", level: str = "", trial: int | None = None, limit: int = 200
) -> Slice:
    """Return log lines of a job (a root's include its children's) after a cursor.

    Args:
        job: the job.
        after: a cursor of an earlier slice.
        text: only lines that contain it, whatever its case.
        level: only lines of this level.
        trial: only lines of this trial.
        limit: how many lines at most.
    """
    root_id = job.root_id_or_self
    chunks = EventChunk.objects.filter(root_id=root_id, last__gt=after, has_logs=True).order_by("last")
    found: list[Event] = []
    cursor = after
    for data in chunks.values_list("data", flat=True).iterator(chunk_size=50):
        for event in unpack_events(data):
            if event["cursor"] <= after:
                continue
            if len(found) >= limit:
                return Slice(found, cursor)
            cursor = event["cursor"]
            if _is_wanted(event, job, text.casefold(), level, trial):
                found.append(event)
    return Slice(found, cursor)


def newest_logs(
    job: Job, *, text: str = "", level: str = "", trial: int | None = None, limit: int = 200
) -> Slice:
    """Return the newest log lines of a job in their order; the arguments are those of `logs`.

    A search says a thousand times as much in metrics: no number of events back from the head leads to them.
    """
    root_id = job.root_id_or_self
    chunks = EventChunk.objects.filter(root_id=root_id, has_logs=True).order_by("-last")
    head = Job.objects.values_list("event_seq", flat=True).get(pk=root_id)
    found: list[Event] = []
    for data in chunks.values_list("data", flat=True).iterator(chunk_size=50):
        wanted = [e for e in unpack_events(data) if _is_wanted(e, job, text.casefold(), level, trial)]
        found += reversed(wanted)
        if len(found) >= limit:
            break
    return Slice(found[:limit][::-1], head)


def _is_wanted(event: dict[str, Any], job: Job, text: str, level: str, trial: int | None) -> bool:
    return (
        event["type"] == "log"
        and (job.parent_id is None or event.get("job") == job.pk)
        and (not level or event.get("level") == level)
        and (trial is None or event.get("trial") == trial)
        and (not text or text in str(event.get("line", "")).casefold())
    )
