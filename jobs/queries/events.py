"""Reads a job's events and logs: one list, one order, from any cursor on."""

from typing import Any, NamedTuple

from jobs.models import EventChunk, Job
from jobs.queries.chunks import Event, unpack_events


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
        limit: the bound; with `job_id` it bounds the events looked at.
        job_id: only this job's events (a child's); the cursor still counts the root's.
    """
    items: list[Event] = []
    cursor = after
    chunks = EventChunk.objects.filter(root_id=root_id, last__gt=after).order_by("last")
    for data in chunks.values_list("data", flat=True)[:limit].iterator(chunk_size=50):
        fresh = [event for event in unpack_events(data) if event["cursor"] > after][: limit - len(items)]
        items += fresh
        cursor = fresh[-1]["cursor"] if fresh else cursor
        if len(items) >= limit:
            break
    if job_id is not None and job_id != root_id:
        items = [event for event in items if event.get("job") == job_id]
    return Slice(items, cursor)


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


def _is_wanted(event: dict[str, Any], job: Job, text: str, level: str, trial: int | None) -> bool:
    return (
        event["type"] == "log"
        and (job.parent_id is None or event.get("job") == job.pk)
        and (not level or event.get("level") == level)
        and (trial is None or event.get("trial") == trial)
        and (not text or text in str(event.get("line", "")).casefold())
    )
