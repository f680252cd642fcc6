"""Begins, continues and ends uploads that arrive in parts, and makes artifacts from them.

The bytes are in `jobs.upload_files`; a row counts them against its project's quotas until it is used,
terminated or expired.
"""

import shutil
import time
from contextlib import suppress
from datetime import timedelta
from itertools import batched
from pathlib import Path

from django.conf import settings
from django.db import transaction

from jobs import access, clock, upload_files, upload_formats
from jobs.actions.data import uploads
from jobs.actions.data.datasets import StoredUpload
from jobs.actions.storage import artifacts
from jobs.errors import BadInput, DiskFull
from jobs.models import Project, ResumableUpload, User
from jobs.queries.data.resumable_uploads import bytes_to_come
from jobs.queries.people.quotas import format_bytes
from jobs.queries.storage import ownership
from jobs.spec.problems import Problem
from jobs.store import StoredFile, store

LIFETIME = timedelta(days=1)
"""An upload expires this long after its last part."""
LIFETIME_SECONDS = LIFETIME.total_seconds()
BATCH = 500


def begin(project: Project, *, name: str, length: int, by: User) -> ResumableUpload:
    """Begin an upload.

    Args:
        project: in which the file will be used.
        name: the file's name, which determines its format.
        length: the whole file's bytes.
        by: who sends it.

    Raises:
        BadInput: the name does not end like a data file's.
        DiskFull: the server's disk has no room for it.
        Forbidden: `by` may not write in the project.
        NotOwned: the store belongs to another installation.
        QuotaReached: the project has no room for the file, or too many uploads in progress.
    """
    access.require(by, project, access.Action.WRITE)
    ownership.require_own()
    # An archive may have any name, and is known once it is there.
    if Path(name).suffix:
        upload_formats.format_by_name(name)
    collect()
    _require_space(length)
    with transaction.atomic():
        reservation = uploads.reserve(project, length, seconds=LIFETIME_SECONDS)
        return ResumableUpload.objects.create(
            key=upload_files.new_key(),
            project=project,
            created_by=by,
            name=name,
            length=length,
            reservation_id=reservation,
            until=clock.seconds_from_now(LIFETIME_SECONDS),
        )


def _require_space(length: int) -> None:
    """Require space for a file beside the missing parts of all other uploads.

    Raises:
        DiskFull: there is too little.
    """
    free = shutil.disk_usage(store().incoming).free - bytes_to_come()
    least = settings.TRAINYARD_MIN_FREE_BYTES
    if length > free - least:
        raise DiskFull(
            f"The disk of the server has room for {format_bytes(max(free - least, 0))} of uploads, and this "
            f"file has {format_bytes(length)}. Send it later, or ask the operator to free disk space "
            f"({format_bytes(least)} stay free: TRAINYARD_MIN_FREE_BYTES)."
        )


def extend(key: str) -> bool:
    """Note that a part arrives: the upload expires later. Return whether it still exists."""
    until = clock.seconds_from_now(LIFETIME_SECONDS)
    rows = ResumableUpload.objects.filter(pk=key)
    if not rows.update(until=until):
        return False
    reservation = rows.values_list("reservation", flat=True).first()
    if reservation is not None:
        uploads.renew(reservation, seconds=LIFETIME_SECONDS)
    return True


def terminate(upload: ResumableUpload) -> None:
    """Delete an upload that is not wanted any more.

    Raises:
        Locked: another request writes or uses its file, whose space would not be free.
        NotOwned: the store belongs to another installation.
    """
    ownership.require_own()
    with upload_files.locked_file(upload.pk):
        end_used(upload)


def end_used(upload: ResumableUpload) -> None:
    """Delete an upload whose file is used, also while another request has its lock."""
    with transaction.atomic():
        ResumableUpload.objects.filter(pk=upload.pk).delete()
        if upload.reservation_id is not None:
            uploads.release(upload.reservation_id)
    upload_files.delete_file(upload.pk)


def store_received(upload: ResumableUpload, project: Project | None, sha256: str = "") -> StoredUpload:
    """Check a received file and move it to the store. A second call returns the same artifact.

    It may read the whole file for its digest, so it must not run in a transaction. The upload is kept until
    `end_used`, so that a request that is refused afterwards can be repeated.

    Args:
        upload: the file.
        project: in which it is used.
        sha256: the digest that it should have, or empty.

    Raises:
        BadInput: it has not arrived as a whole, belongs to another project, or does not match its name or the
            digest.
        OnOtherServer: it arrives at another web server.
    """
    if project is None or upload.project_id != project.pk:
        raise _refused(f"the upload {upload.pk} was begun in the project {upload.project}")
    if upload.artifact is not None:
        _require_digest(upload.artifact.digest, sha256)
        return _adopted(upload, StoredFile(upload.artifact.digest, upload.length))
    upload_files.require_here(upload.pk)
    if upload.sha256 and not upload_files.path_of(upload.pk).exists():
        # A request moved the file, and was killed or could not reach the store after that.
        _require_digest(upload.sha256, sha256)
        moved = StoredFile(upload.sha256, upload.length)
        store().complete(moved)
        return _adopted(upload, moved)
    if (size := upload_files.received_bytes(upload.pk)) != upload.length:
        raise _refused(f"only {size:,} of the {upload.length:,} bytes of {upload.name!r} have been received")
    path = upload_files.path_of(upload.pk)
    with upload_files.locked_file(upload.pk):
        upload_formats.format_of_upload(path, upload.name)
        file = upload_files.digest_of(upload.pk)
        _require_digest(file.digest, sha256)
        ResumableUpload.objects.filter(pk=upload.pk).update(sha256=file.digest)
        store().take(path, file)
    return _adopted(upload, file)


def _adopted(upload: ResumableUpload, file: StoredFile) -> StoredUpload:
    source = upload_formats.format_of_upload(store().path(file.digest), upload.name)
    artifact = artifacts.adopt(file)
    ResumableUpload.objects.filter(pk=upload.pk).update(artifact=artifact)
    return StoredUpload(artifact, source, upload.name)


def _require_digest(digest: str, expected: str) -> None:
    if expected and digest != expected.lower():
        message = f"the received file has sha256 {digest}, not {expected.lower()}"
        raise BadInput(message, [Problem("/sha256", message)])


def _refused(message: str) -> BadInput:
    return BadInput(message, [Problem("/upload", message)])


def collect() -> int:
    """Delete expired uploads, and files without a row that are as old. Count the uploads."""
    ended = 0
    # A copy of a database has the keys of uploads that the original still receives.
    try:
        if ownership.recent_problem() is not None:
            return ended
    except OSError:  # it is not known while the store does not answer
        return ended
    for upload in ResumableUpload.objects.filter(until__lt=clock.now()).select_related("project"):
        # One that a request uses is collected later.
        with suppress(upload_files.Locked):
            terminate(upload)
            ended += 1
    before = time.time() - LIFETIME_SECONDS
    old = [path for path in store().incoming.iterdir() if _time_of(path) < before]
    for paths in batched(old, BATCH):
        keys = {path.name.removesuffix(upload_files.UNVERIFIED) for path in paths}
        keys_with_row = set(ResumableUpload.objects.filter(pk__in=keys).values_list("pk", flat=True))
        for path in paths:
            if path.name.removesuffix(upload_files.UNVERIFIED) not in keys_with_row:
                path.unlink(missing_ok=True)
    return ended


def _time_of(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()  # removed since it was listed
