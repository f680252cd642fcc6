"""Reads a deletion's consequences, and the deletions that can still be undone."""

from datetime import timedelta
from typing import cast

from django.db.models import F, QuerySet, Sum

from jobs import access, clock
from jobs.answers.storage.deletions import (
    DeletionKind,
    DeletionOut,
    DeletionPreviewOut,
    LostOut,
)
from jobs.errors import NotFound
from jobs.models import (
    Artifact,
    Checkpoint,
    CodeVersion,
    Dataset,
    DatasetVersion,
    Deletion,
    Experiment,
    Job,
    ModelVersion,
    Project,
    User,
)
from jobs.public_path import beside_public_path
from jobs.queries.storage.deletion_referrers import find_referrers
from jobs.queries.storage.deletion_scope import DELETION_KINDS, Deletable, Scope, artifacts_of

RESTORABLE = timedelta(days=7)


def project_of(row: Deletable) -> Project | None:
    """Return a row's project. None for bundled data and their versions and files."""
    if isinstance(row, Project):
        return row
    return row.model.project if isinstance(row, ModelVersion) else row.project


def owner_of(row: Deletable) -> User | None:
    """Return the row's creator, if any. They may delete it, like its project's admins."""
    return row.created_by if isinstance(row, Experiment | Job | Dataset | CodeVersion) else None


def may_delete(user: User, row: Deletable) -> bool:
    """Return whether `user` has the permission to delete the row."""
    return access.may_delete(user, project_of(row), owner=owner_of(row))


def preview_out(row: Deletable) -> DeletionPreviewOut:
    """Return the objects that a deletion would delete, and those that prevent it."""
    scope = Scope.of_row(row)
    artifacts, checkpoints = _total_bytes(scope.artifacts()), _total_bytes(scope.checkpoints)
    return DeletionPreviewOut(
        kind=cast(DeletionKind, str(DELETION_KINDS[type(row)])),
        label=row_label(row),
        lost=count_lost(scope),
        bytes=artifacts + checkpoints,
        frees=_total_bytes(scope.artifacts_only_here()) + checkpoints,
        referrers=find_referrers(scope),
        days=RESTORABLE.days,
    )


def count_lost(scope: Scope) -> list[LostOut]:
    """Count the rows and files in a scope; kinds without any are left out."""
    files = Artifact.objects.filter(pk__in=scope.job_artifacts.values("artifact"))
    model_files = Artifact.objects.filter(pk__in=scope.versions.values("artifact"))
    no_versions, no_code = ModelVersion.objects.none(), CodeVersion.objects.none()
    data = Artifact.objects.filter(artifacts_of(scope.dataset_versions, no_versions, no_code))
    sources = Artifact.objects.filter(artifacts_of(DatasetVersion.objects.none(), no_versions, scope.code))
    rows = (
        LostOut(what="experiments", count=scope.experiments.count()),
        LostOut(what="jobs", count=scope.jobs.roots().count()),
        LostOut(what="trials", count=scope.trials.count()),
        LostOut(what="data sets", count=scope.datasets.count()),
        LostOut(what="dataset versions", count=scope.dataset_versions.count(), bytes=_total_bytes(data)),
        LostOut(what="versions of code", count=scope.code.count(), bytes=_total_bytes(sources)),
        LostOut(what="models", count=scope.models.count()),
        LostOut(what="model versions", count=scope.versions.count(), bytes=_total_bytes(model_files)),
        LostOut(what="files of jobs", count=files.count(), bytes=_total_bytes(files)),
        LostOut(what="checkpoints", count=scope.checkpoints.count(), bytes=_total_bytes(scope.checkpoints)),
    )
    return [row for row in rows if row.count]


def _total_bytes(rows: QuerySet[Artifact] | QuerySet[Checkpoint]) -> int:
    return rows.aggregate(total=Sum("bytes"))["total"] or 0


def row_label(row: Deletable) -> str:
    """Return the row's label in messages."""
    match row:
        case Project():
            return f"project {row.slug}"
        case Dataset():
            return f"data set {row.slug}"
        case Experiment():
            return f"experiment {row.name}"
        case Job():
            return f"job {row.pk}"
        case ModelVersion():
            return str(row)
        case CodeVersion():
            return f"code {row}"


def find_deletion(user: User, kind: Deletion.Kind, **path: str | int | None) -> int | None:
    """Return the key under which `user` may restore a deleted row. None without one.

    Raises:
        NotFound: several projects have such a row, and `path` does not name the project.
    """
    model = next(model for model, row_kind in DELETION_KINDS.items() if row_kind == kind)
    rows = model.everything.filter(  # type: ignore[attr-defined]
        deletion__kind=kind, deletion__target=F("pk"), deletion__in=restorable_deletions(user), **path
    )
    keys = list(rows.values_list("pk", flat=True)[:2])
    if len(keys) > 1:
        raise NotFound("Several projects have such a deletion: give the project.", code="ambiguous")
    return keys[0] if keys else None


def restorable_deletions(user: User) -> QuerySet[Deletion]:
    """Return the deletions that `user` may undo now, newest first."""
    rows = access.restorable_deletions(user).filter(until__gt=clock.estimate())
    return rows.select_related("project", "by").order_by("-pk")


def deletion_out(deletion: Deletion) -> DeletionOut:
    """Return a deletion's API representation."""
    return DeletionOut(
        id=deletion.pk,
        kind=cast(DeletionKind, deletion.kind),
        label=deletion.label,
        project=deletion.project.slug,
        lost=[LostOut.model_validate(item) for item in deletion.lost],
        bytes=deletion.bytes,
        deleted_by=deletion.by.username,
        deleted=deletion.created,
        until=deletion.until,
        restore=_page_address(deletion),
    )


def _page_address(deletion: Deletion) -> str:
    slug, query = deletion.project.slug, ""
    match deletion.kind:
        case Deletion.Kind.PROJECT:
            path = f"projects/{slug}"
        case Deletion.Kind.DATASET:
            dataset = Dataset.everything.get(pk=deletion.target)
            path, query = f"datasets/{dataset.slug}", f"?project={slug}"
        case Deletion.Kind.VERSION:
            version = ModelVersion.everything.select_related("model").get(pk=deletion.target)
            path = f"models/{version.model.name}/versions/{version.number}"
        case Deletion.Kind.CODE:
            code = CodeVersion.everything.get(pk=deletion.target)
            path, query = f"code/{code.digest}", f"?project={slug}"
        case kind:
            path = f"{kind}s/{deletion.target}"
    return beside_public_path(f"/api/v1/{path}/restore{query}")
