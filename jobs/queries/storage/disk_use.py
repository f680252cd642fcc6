"""Reads how many bytes a project uses on disk.

These are each artifact to which its rows refer, once, its checkpoints, and its jobs' stored events and metric
points. Other database rows are small.

Deleted objects count until they are removed, because their files are still there.
"""

import threading
import time
from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet, Sum

from jobs import clock
from jobs.models import (
    Artifact,
    Checkpoint,
    CodeFile,
    DatasetVersion,
    Fetch,
    FurtherFile,
    Job,
    JobArtifact,
    ModelVersion,
    UploadReservation,
)

RECENT_SECONDS = 5.0
MOST_REMEMBERED = 10_000

_lock = threading.Lock()
_recent: dict[int, tuple[float, int]] = {}
"""Project key → the monotonic time of a read in seconds, and the bytes that it counted."""


def bytes_of_project(project_id: int) -> int:
    """Count the bytes in a project's files and events now."""
    artifacts = Artifact.objects.filter(pk__in=_digests_of_project(project_id)).aggregate(total=Sum("bytes"))
    checkpoints = Checkpoint.objects.kept().filter(job__project=project_id).aggregate(total=Sum("bytes"))
    events = Job.everything.filter(project=project_id).aggregate(total=Sum("event_bytes"))
    return (artifacts["total"] or 0) + (checkpoints["total"] or 0) + (events["total"] or 0)


def bytes_being_received(project_id: int) -> int:
    """Return the bytes reserved for a project's uploads in progress."""
    rows = UploadReservation.objects.filter(project=project_id, until__gt=clock.estimate())
    return (rows.aggregate(total=Sum("bytes"))["total"] or 0) + bytes_being_fetched(project_id)


def bytes_being_fetched(project_id: int) -> int:
    """Return the bytes reserved for files that a project fetches from addresses."""
    rows = Fetch.objects.filter(version__dataset__project=project_id, state=Fetch.State.RUNNING)
    return rows.aggregate(total=Sum("reserved"))["total"] or 0


def bytes_added_by(artifacts: Iterable[Artifact], project_id: int) -> int:
    """Return how many bytes new artifacts add to a project. Those that it has add none."""
    sizes = {artifact.pk: artifact.bytes for artifact in artifacts}
    present = Artifact.objects.filter(pk__in=list(sizes)).filter(pk__in=_digests_of_project(project_id))
    for digest in present.values_list("pk", flat=True):
        del sizes[digest]
    return sum(sizes.values())


def _digests_of_project(project_id: int) -> QuerySet[Any, Any]:
    data = DatasetVersion.objects.filter(dataset__project=project_id).order_by()
    further = FurtherFile.objects.filter(version__dataset__project=project_id).order_by()
    models = ModelVersion.everything.filter(model__project=project_id).order_by()
    outputs = JobArtifact.objects.filter(job__project=project_id).order_by()
    code = CodeFile.objects.filter(version__project=project_id).order_by()
    return (
        data.exclude(upload=None)
        .values_list("upload")
        .union(
            data.exclude(table=None).values_list("table"),
            further.values_list("artifact"),
            models.values_list("artifact"),
            outputs.values_list("artifact"),
            code.values_list("artifact"),
        )
    )


def recent_bytes(project_id: int) -> int:
    """Return the bytes in a project's files and events now or up to `RECENT_SECONDS` ago."""
    now = time.monotonic()
    with _lock:
        read_at, size = _recent.get(project_id, (-RECENT_SECONDS, 0))
    if now - read_at < RECENT_SECONDS:
        return size
    size = bytes_of_project(project_id)
    with _lock:
        if len(_recent) >= MOST_REMEMBERED:
            _recent.clear()
        _recent[project_id] = (now, size)
    return size


def forget_recent_bytes() -> None:
    """Clear the cache behind `recent_bytes`. For tests, whose projects have the same keys."""
    with _lock:
        _recent.clear()
