"""Reads uploads that arrive in parts."""

from django.db.models import QuerySet

from jobs import access, upload_files
from jobs.answers.data.resumable_uploads import ResumableUploadOut
from jobs.models import Project, ResumableUpload, User

MOST_LISTED = 20


def uploads_of_project(user: User, project: Project | None) -> QuerySet[ResumableUpload]:
    """Return the uploads that a user may continue or end."""
    rows = access.visible_uploads(user).select_related("project", "created_by")
    return rows if project is None else rows.filter(project=project)


def unused_uploads(user: User) -> list[ResumableUploadOut]:
    """Return a user's newest unused uploads, also those from a refused form."""
    rows = uploads_of_project(user, None).filter(created_by=user).order_by("-created")
    return [upload_out(upload) for upload in rows[:MOST_LISTED]]


def received_bytes(upload: ResumableUpload) -> int:
    """Count the bytes that have been received."""
    return upload.length if is_moved(upload) else upload_files.received_bytes(upload.pk)


def is_moved(upload: ResumableUpload) -> bool:
    """Return whether the file was moved to the store. Its copy to object storage may not be complete."""
    if upload.artifact_id is not None:
        return True
    return bool(upload.sha256) and not upload_files.path_of(upload.pk).exists()


def upload_out(upload: ResumableUpload) -> ResumableUploadOut:
    """Return an upload's API representation."""
    return ResumableUploadOut(
        id=upload.pk,
        project=upload.project.slug,
        file=upload.name,
        length=upload.length,
        offset=received_bytes(upload),
        created_by=upload.created_by.username,
        created=upload.created,
        expires=upload.until,
    )


def bytes_to_come() -> int:
    """Sum the bytes that all uploads have yet to send."""
    rows = ResumableUpload.objects.filter(artifact=None)
    return sum(max(0, upload.length - received_bytes(upload)) for upload in rows)
