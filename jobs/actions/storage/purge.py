"""Removes deleted rows from the database once they can no longer be restored."""

import time

from django.db import connection, models, transaction
from django.db.models import Q

from jobs import clock
from jobs.actions.audit import audit
from jobs.actions.isolation import for_each
from jobs.models import (
    Checkpoint,
    Deletion,
    EventChunk,
    Execution,
    Job,
    JobArtifact,
    MetricChunk,
    MetricSeries,
    ModelVersion,
    RegisteredModel,
    Trial,
    TrialDecision,
)
from jobs.queries.storage.deletion_scope import Scope

BATCH = 1000
"""Rows per transaction, for which other SQLite writers wait."""

# The rows of a job that may be many, in the order in which they can be deleted.
PARTS: tuple[tuple[type[models.Model], str], ...] = (
    (EventChunk, "root"),
    (MetricChunk, "series__job"),
    (MetricSeries, "job"),
    (TrialDecision, "trial__job"),
    (Execution, "trial__job"),
    (JobArtifact, "job"),
    (Checkpoint, "job"),
)


def due_deletions() -> models.QuerySet[Deletion]:
    """Return the deletions whose time has passed, oldest first."""
    return Deletion.objects.filter(until__lte=clock.now()).order_by("pk")


def purge_due(*, deadline: float) -> int:
    """Purge the deletions whose time has passed, oldest first, until the monotonic clock shows `deadline`.

    It may be stopped anywhere: the next call continues. Files are left to the collection.

    Returns:
        How many deletions were completed.
    """
    return for_each(
        due_deletions().select_related("project"), lambda deletion: _purge_deletion(deletion, deadline)
    )


def _purge_deletion(deletion: Deletion, deadline: float) -> bool:
    jobs = list(_rows_to_remove(deletion).jobs.values_list("pk", flat=True))
    for job in jobs:
        if not _remove_parts(job, deadline):
            return False
    with transaction.atomic():
        if Deletion.objects.select_for_update().filter(pk=deletion.pk).first() is None:
            return False  # another process has purged it
        _remove_rows(deletion)
        audit.record(
            f"{deletion.kind}.purge",
            f"{deletion.kind}:{deletion.target}",
            by=None,
            project=None if deletion.kind == Deletion.Kind.PROJECT else deletion.project,
            name=deletion.label,
        )
    return True


def _rows_to_remove(deletion: Deletion) -> Scope:
    """Return the rows to remove. A project takes along rows that its earlier deletions hide."""
    scope = Scope.of_deletion(deletion)
    if deletion.kind != Deletion.Kind.PROJECT:
        return scope
    in_project = Q(project=deletion.project_id)
    return scope.changed(
        jobs=Job.everything.filter(in_project),
        versions=ModelVersion.everything.filter(model__project=deletion.project_id),
        models=RegisteredModel.everything.filter(in_project),
        experiments=scope.experiments.model.everything.filter(in_project),
        datasets=scope.datasets.model.everything.filter(in_project),
        code=scope.code.model.everything.filter(in_project),
    )


def _remove_parts(job: int, deadline: float) -> bool:
    """Remove a job's parts in small transactions. Return whether all were removed."""
    for model, path in PARTS:
        while keys := list(model._default_manager.filter(**{path: job}).values_list("pk", flat=True)[:BATCH]):
            if time.monotonic() > deadline:
                return False
            with transaction.atomic():
                model._default_manager.filter(pk__in=keys)._raw_delete(connection.alias)
    Trial.objects.filter(job=job, answered_by__isnull=False).update(answered_by=None)
    while keys := list(Trial.objects.filter(job=job).values_list("pk", flat=True)[:BATCH]):
        if time.monotonic() > deadline:
            return False
        with transaction.atomic():
            Trial.objects.filter(pk__in=keys).delete()
    return True


def _remove_rows(deletion: Deletion) -> None:
    """Remove the remaining rows, inside the caller's transaction."""
    scope = _rows_to_remove(deletion)
    for version in scope.versions:
        RegisteredModel.everything.filter(pk=version.model_id, last_number__lt=version.number).update(
            last_number=version.number
        )
    scope.jobs.filter(parent__isnull=False).delete()
    for rows in scope.querysets():
        if rows.model is not scope.projects.model:
            rows.delete()
    if deletion.kind == Deletion.Kind.PROJECT:
        # The project names its own deletion, and each deletion names the project.
        scope.projects.update(deletion=None)
        Deletion.objects.filter(project=deletion.project_id).delete()
        scope.projects.model.everything.filter(pk=deletion.project_id).delete()
    else:
        Deletion.objects.filter(pk=deletion.pk).delete()
