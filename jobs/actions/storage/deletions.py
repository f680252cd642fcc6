"""Deletes objects so that they can be restored for some days: their rows are hidden, not removed.

An action that adds an experiment, a job, a version or a request locks the project's or the endpoint's row,
which a deletion locks too. So nothing can be added to a row while it is deleted.
"""

from django.db import transaction

from jobs import access, clock, hints
from jobs.actions.audit import audit
from jobs.errors import Conflict, InUse, NotFound, StaleState
from jobs.models import (
    Dataset,
    DatasetVersion,
    Deletion,
    Endpoint,
    Job,
    ModelVersion,
    Project,
    RegisteredModel,
    User,
)
from jobs.queries.storage import deletions as queries
from jobs.queries.storage.deletion_scope import DELETION_KINDS, Deletable, Scope

BATCH = 500
"""SQLite limits the number of parameters in a statement."""


def require_deletable(row: Deletable, *, by: User) -> None:
    """Check that `by` may delete the row: as an admin of its project, or as who created it.

    Raises:
        Forbidden: `by` is neither. Projects and model versions take an admin.
        Conflict: the row is a step of another job, or bundled.
    """
    access.require_deletion(by, queries.project_of(row), owner=queries.owner_of(row))
    if isinstance(row, Job) and row.parent_id is not None:
        raise Conflict(f"job {row.pk} is a step of job {row.root_id_or_self}: delete that one")


def delete(row: Deletable, *, by: User) -> Deletion:
    """Hide a row and everything that belongs to it. It can be restored until the deletion's `until`.

    Raises:
        Forbidden: `by` may not delete it.
        InUse: something outside refers to it, or work in it has not ended. Nothing was changed.
        NotFound: another user has deleted it meanwhile.
    """
    require_deletable(row, by=by)
    project = queries.project_of(row)
    if project is None:
        raise Conflict("Bundled data cannot be deleted.")
    with transaction.atomic():
        _lock_row(row, project)
        preview = queries.preview_out(row)
        if preview.referrers:
            raise InUse(preview.label, preview.referrers)
        now = clock.now()
        deletion = Deletion.objects.create(
            kind=DELETION_KINDS[type(row)],
            target=row.pk,
            label=preview.label[:300],
            project=project,
            lost=[loss.model_dump() for loss in preview.lost],
            bytes=preview.bytes,
            by=by,
            created=now,
            until=now + queries.RESTORABLE,
        )
        # Evaluated before the first update: what belongs to a row is found through visible rows.
        rows_by_model = [
            (rows.model, list(rows.values_list("pk", flat=True))) for rows in Scope.of_row(row).querysets()
        ]
        for model, keys in rows_by_model:
            _mark_deleted(model, keys, deletion)
        _record_deletion("delete", deletion, by=by, bytes=preview.bytes)
        hints.send("access")
    return deletion


def _mark_deleted(model: type, keys: list[int], deletion: Deletion | None) -> None:
    for start in range(0, len(keys), BATCH):
        model.everything.filter(pk__in=keys[start : start + BATCH]).update(deletion=deletion)  # type: ignore[attr-defined]


def _lock_row(row: Deletable, project: Project) -> None:
    """Lock the project and the row until the transaction ends.

    Raises:
        NotFound: the row has been deleted since it was read.
    """
    if isinstance(row, ModelVersion):
        # Before the project, as in a promotion request, which locks the project for its gate job.
        Endpoint.objects.select_for_update(no_key=True).filter(model=row.model_id).first()
    Project.objects.select_for_update(no_key=True).filter(pk=project.pk).first()
    if isinstance(row, Job):
        # The steps too: `require_present` locks the one that a version is made of.
        list(Scope.of_row(row).jobs.locked().order_by("pk").only("pk"))
    if type(row).objects.select_for_update(of=("self",), no_key=True).filter(pk=row.pk).first() is None:
        raise NotFound(f"There is no {DELETION_KINDS[type(row)].label} {row} any more.")


def restore(deletion: Deletion, *, by: User) -> None:
    """Show a deletion's rows again.

    Raises:
        NotFound: the deletion is over: it was undone, or its time has passed.
        Conflict: something that the rows need is deleted, and has to be restored first.
    """
    with transaction.atomic():
        Project.everything.select_for_update(no_key=True).filter(pk=deletion.project_id).first()
        rows = Deletion.objects.select_for_update().filter(pk=deletion.pk, until__gt=clock.now())
        if rows.first() is None:
            raise NotFound(f"The {deletion} can no longer be undone.")
        scope = Scope.of_deletion(deletion)
        if missing := _missing_row(scope, deletion):
            raise Conflict(f"{deletion.label} cannot be restored before {missing} is.", code="needs_deleted")
        for hidden in scope.querysets():
            hidden.update(deletion=None)
        _record_deletion("restore", deletion, by=by)
        Deletion.objects.filter(pk=deletion.pk).delete()
        hints.send("access")


def _missing_row(scope: Scope, deletion: Deletion) -> str:
    """Name a deleted row outside that a row in the scope needs; empty if there is none."""
    if deletion.project.deletion_id not in (None, deletion.pk):
        return f"project {deletion.project.slug}"
    jobs = scope.jobs.exclude(experiment=None).exclude(experiment__deletion=None)
    if job := jobs.exclude(experiment__deletion=deletion).select_related("experiment").first():
        return f"experiment {job.experiment}"
    payloads = (job.payload for job in scope.jobs.only("kind", "payload_json"))
    read = {payload.dataset_version for payload in payloads if payload.dataset_version is not None}
    data = DatasetVersion.objects.filter(pk__in=read).exclude(dataset__deletion=None)
    if version := data.exclude(dataset__deletion=deletion).select_related("dataset").first():
        return f"data set {version.dataset}"
    versions = scope.versions.exclude(source_job=None).exclude(source_job__deletion=None)
    if model_version := versions.exclude(source_job__deletion=deletion).first():
        return f"job {model_version.source_job_id}"
    coded = scope.versions.exclude(code=None).exclude(code__deletion=None)
    if with_code := coded.exclude(code__deletion=deletion).select_related("code").first():
        return f"code {with_code.code}"
    models = scope.versions.exclude(model__deletion=None).exclude(model__deletion=deletion)
    return f"model {models[0].model}" if models else ""


def _record_deletion(verb: str, deletion: Deletion, *, by: User | None, **detail: object) -> None:
    audit.record(
        f"{deletion.kind}.{verb}",
        f"{deletion.kind}:{deletion.target}",
        by=by,
        project=deletion.project,
        name=deletion.label,
        **detail,
    )


def require_present(*rows: Deletable | RegisteredModel | None) -> None:
    """Lock rows until the transaction ends, and check that no other transaction has deleted one.

    A write that refers to a row does not lock it: the database checks references only at the commit.

    Raises:
        StaleState: one is deleted.
    """
    for row in rows:
        if row is None:
            continue
        if not type(row).objects.select_for_update(no_key=True).filter(pk=row.pk).exists():
            raise StaleState(f"{row} was deleted meanwhile")


def slug_taken(what: str, row: Project | Dataset) -> str:
    """Return why a slug cannot be used: by whom it is taken, or until when it is reserved."""
    if row.deletion is None:
        return f"{what} already exists."
    return f"{what} was deleted and can be restored until {row.deletion.until:%Y-%m-%d}; use another slug."
