"""Reads how many bytes a project's files have: each artifact that its rows refer to once, and checkpoints.

Deleted objects count until they are removed, because their files are still there.
"""

import threading
import time
from typing import Any

from django.db.models import QuerySet, Sum

from jobs.models import Artifact, Checkpoint, DatasetVersion, JobArtifact, ModelVersion

RECENT_SECONDS = 5.0
MOST_REMEMBERED = 10_000

_lock = threading.Lock()
_recent: dict[int, tuple[float, int]] = {}
"""The key of a project → the monotonic time of a read in seconds, and the bytes."""


def of_project(project_id: int) -> int:
    """Return the bytes of a project's files now."""
    artifacts = Artifact.objects.filter(pk__in=_digests(project_id)).aggregate(total=Sum("bytes"))
    kept = Checkpoint.objects.kept().filter(job__project=project_id).aggregate(total=Sum("bytes"))
    return (artifacts["total"] or 0) + (kept["total"] or 0)


def added_by(artifact: Artifact, project_id: int) -> int:
    """Return how many bytes a reference to an artifact adds to a project: none if it has one already."""
    known = Artifact.objects.filter(pk=artifact.pk).filter(pk__in=_digests(project_id)).exists()
    return 0 if known else artifact.bytes


def _digests(project_id: int) -> QuerySet[Any, Any]:
    data = DatasetVersion.objects.filter(dataset__project=project_id).order_by()
    made = ModelVersion.everything.filter(model__project=project_id).order_by()
    outputs = JobArtifact.objects.filter(job__project=project_id).order_by()
    return (
        data.exclude(upload=None)
        .values_list("upload")
        .union(
            data.exclude(table=None).values_list("table"),
            made.values_list("artifact"),
            outputs.values_list("artifact"),
        )
    )


def recently(project_id: int) -> int:
    """Return the bytes of a project's files now or up to `RECENT_SECONDS` ago."""
    now = time.monotonic()
    with _lock:
        read, found = _recent.get(project_id, (-RECENT_SECONDS, 0))
    if now - read < RECENT_SECONDS:
        return found
    found = of_project(project_id)
    with _lock:
        if len(_recent) >= MOST_REMEMBERED:
            _recent.clear()
        _recent[project_id] = (now, found)
    return found


def forget() -> None:
    """Read again the next time. For tests, whose projects have the same keys."""
    with _lock:
        _recent.clear()
