"""Reads uploads that arrive in parts."""

from django.db.models import QuerySet

from jobs import access, upload_files
from jobs.answers.data.resumable_uploads import ResumableUploadOut
from jobs.models import Project, ResumableUpload, User

MOST_LISTED = 20


def listed(user: User, project: Project | None) -> QuerySet[ResumableUpload]:
    """Return the uploads that a user may continue or end."""
    rows = access.visible_uploads(user).select_related("project", "created_by")
    return rows if project is None else rows.filter(project=project)


def listed_own(user: User) -> list[ResumableUploadOut]:
    """Return the newest uploads that a user has begun and not used yet, also those of a refused form."""
    rows = listed(user, None).filter(created_by=user).order_by("-created")
    return [shown(upload) for upload in rows[:MOST_LISTED]]


def offset_of(upload: ResumableUpload) -> int:
    """Return the number of bytes that have been received."""
    return upload.length if is_moved(upload) else upload_files.received(upload.pk)


def is_moved(upload: ResumableUpload) -> bool:
    """Return whether the file was moved to the store, which may not have all of it in object storage yet."""
    if upload.artifact_id is not None:
        return True
    return bool(upload.sha256) and not upload_files.path_of(upload.pk).exists()


def shown(upload: ResumableUpload) -> ResumableUploadOut:
    """Return the answer of an upload."""
    return ResumableUploadOut(
        id=upload.pk,
        project=upload.project.slug,
        file=upload.name,
        length=upload.length,
        offset=offset_of(upload),
        created_by=upload.created_by.username,
        created=upload.created,
        expires=upload.until,
    )


def bytes_to_come() -> int:
    """Return the bytes of all uploads that have not arrived yet."""
    rows = ResumableUpload.objects.filter(artifact=None)
    return sum(max(0, upload.length - offset_of(upload)) for upload in rows)
