"""Queues the jobs that read and describe dataset versions, and records their results."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from jobs import access
from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.actions.runs import submit
from jobs.errors import Conflict
from jobs.models import Artifact, DatasetVersion, Fetch, Job, User
from jobs.queries.data.datasets import profile_jobs, profile_payload
from jobs.spec.data.profile import Profile


def queue_profile(version: DatasetVersion, *, by: User | None) -> Job:
    """Queue the job that reads and describes a dataset version."""
    return submit.queue(
        profile_payload(version),
        project=version.dataset.project,
        title=f"Profile {version}",
        priority=80,
        created_by=by,
    )


def record_profile(version_id: int, profile: Profile, digest: str, table: Artifact) -> None:
    """Store a profile job's result and mark the version as ready. `table` is an Arrow file.

    A reference does not keep the file from its address, which the next collection deletes.
    """
    rows = DatasetVersion.objects.filter(pk=version_id)
    if rows.filter(fetch__mode=Fetch.Mode.REFERENCE).exists():
        rows.update(upload=None)
    rows.update(
        state=DatasetVersion.State.READY,
        table=table,
        digest=digest,
        rows=profile.rows,
        # A table may have thousands of columns, and most fields in a column have their default.
        profile_json=profile.model_dump(mode="json", exclude_defaults=True),
        error=None,
    )


def record_profile_failure(version_id: int, error: Mapping[str, Any]) -> None:
    """Store why a version could not be read, with the upload's file name instead of its digest.

    A version that is already ready stays ready: only its first profile decides.
    """
    version = DatasetVersion.objects.select_related("upload").get(pk=version_id)
    # The runner knows the upload only as a file in the store, which is named by its digest.
    readable_error = dict(error)
    if version.upload is not None:
        digests = [version.upload.digest, *version.further_files.values_list("artifact", flat=True)]
        for digest, name in zip(digests, version.files or ["the file"], strict=True):
            readable_error["message"] = str(readable_error.get("message", "")).replace(digest, name)
    DatasetVersion.objects.filter(pk=version_id, state=DatasetVersion.State.PREPARING).update(
        state=DatasetVersion.State.FAILED, error=readable_error
    )


def profile_again(version: DatasetVersion, *, by: User) -> Job:
    """Profile a failed version again, for example after the cause on the worker was fixed.

    Raises:
        Conflict: the version has not failed, or a job is profiling it.
        QuotaReached: the project has too many unfinished jobs.
    """
    project = version.dataset.project
    if project is None:
        access.require_admin(by)
    else:
        access.require(by, project, access.Action.WRITE)
    with transaction.atomic():
        if project is not None:
            quotas.require_room_for_job(project)
        failed = DatasetVersion.objects.filter(pk=version.pk, state=DatasetVersion.State.FAILED)
        # A failed version may already be read again, if a user retried its job instead.
        is_being_read = profile_jobs([version]).unfinished().exists()
        if is_being_read or not failed.update(state=DatasetVersion.State.PREPARING, error=None):
            raise Conflict(f"{version} is {version.state}: only a failed version can be read again")
        job = queue_profile(version, by=by)
        audit.record("dataset.try_again", version, by=by, project=project)
    return job
