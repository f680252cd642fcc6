"""Creates code versions from files that the reader process has checked. Nothing here executes them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from django.db import IntegrityError, transaction

from jobs import access
from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.actions.storage import artifacts, deletions
from jobs.errors import BadInput, Conflict, NotFound
from jobs.messages.code import MAX_NAME, CodeFound
from jobs.models import Artifact, CodeFile, CodeVersion, Project, User
from jobs.queries.storage import disk_use
from jobs.spec.problems import Problem
from jobs.store import StoredFile, sha256_of, store


class CheckedFile(NamedTuple):
    """A file in a version: its checked path, where its bytes are, and its lines; None if it is not text."""

    path: str
    place: Path
    lines: int | None


class StoredCode(NamedTuple):
    """A version's files in the store, and its digest."""

    digest: str
    files: tuple[tuple[CheckedFile, StoredFile], ...]
    findings: CodeFound


class Created(NamedTuple):
    """A version, and whether it is new: equal files are the version that exists."""

    version: CodeVersion
    is_new: bool


def check_name(name: str) -> str:
    """Return a code name without spaces around it.

    Raises:
        BadInput: it is empty, too long, or has control characters.
    """
    name = name.strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        message = f"use 1 to {MAX_NAME} characters, all of them printable"
        raise BadInput(f"The name is not usable: {message}.", [Problem("/name", message)])
    return name


def store_files(project: Project, files: Sequence[CheckedFile], findings: CodeFound) -> StoredCode:
    """Copy a version's files to the store. This is slow, so it must not run in a transaction.

    Raises:
        QuotaReached: the files do not fit into the project's disk quota.
    """
    contents = [sha256_of(file.place) for file in files]
    new_artifacts = [Artifact(digest=stored.digest, bytes=stored.bytes) for stored in contents]
    # A model's versions share most of their files.
    quotas.require_room_on_disk(project, disk_use.bytes_added_by(new_artifacts, project.pk))
    for file, stored in zip(files, contents, strict=True):
        store().put(file.place, size=stored.bytes)
    pairs = tuple(zip(files, contents, strict=True))
    return StoredCode(digest_of([(file.path, stored) for file, stored in pairs]), pairs, findings)


def create(project: Project, *, name: str, code: StoredCode, by: User) -> Created:
    """Create a version from stored files, or return the one with the same files, under its own name.

    A deleted one is restored: who may write may bring its files back, also without the right to restore it.

    Raises:
        Forbidden: `by` may not write in the project.
        BadInput: the name is not usable.
        Conflict: the same files were deleted, and are being removed.
        QuotaReached: the files do not fit into the project's disk quota.
    """
    access.require(by, project, access.Action.WRITE)
    name = check_name(name)
    if (existing := _existing_version(project, code.digest)) is not None:
        return Created(_restore_version(existing, by), is_new=False)
    version = CodeVersion(
        project=project,
        name=name,
        digest=code.digest,
        bytes=sum(stored.bytes for _, stored in code.files),
        found_json=code.findings.model_dump(mode="json", exclude_defaults=True),
        summary_json=code.findings.summary(),
        created_by=by,
    )
    try:
        with transaction.atomic():
            _insert_version(version, code)
            audit.record("code.create", version, by=by, project=project, name=name, digest=code.digest)
    except IntegrityError:
        # Another request has created the same version meanwhile.
        if (existing := _existing_version(project, code.digest)) is None:
            raise
        return Created(_restore_version(existing, by), is_new=False)
    return Created(version, is_new=True)


def _insert_version(version: CodeVersion, code: StoredCode) -> None:
    quotas.lock_project(version.project)
    # In one order in all transactions, since each locks the rows of its artifacts.
    adopted = {
        stored.digest: artifacts.adopt(stored) for stored in sorted({content for _, content in code.files})
    }
    quotas.require_room_for_artifact(version.project, *adopted.values())
    version.save(force_insert=True)
    CodeFile.objects.bulk_create(
        CodeFile(version=version, path=file.path, artifact=adopted[stored.digest], lines=file.lines)
        for file, stored in code.files
    )


def _existing_version(project: Project, digest: str) -> CodeVersion | None:
    versions = CodeVersion.everything.select_related("project", "created_by", "deletion")
    return versions.filter(project=project, digest=digest).first()


def _restore_version(version: CodeVersion, by: User) -> CodeVersion:
    """Return a version, after its restoration if it is deleted.

    Raises:
        Conflict: it is being removed.
    """
    if version.deletion is not None:
        try:
            deletions.restore(version.deletion, by=by)
        except NotFound as error:
            message = f"{version} has the same files and is being removed. Try again in a minute."
            raise Conflict(message) from error
        version.deletion = None
    return version


def digest_of(files: Sequence[tuple[str, StoredFile]]) -> str:
    """Compute a version's digest from its sorted paths and their content digests."""
    digest = hashlib.sha256()
    for path, stored in sorted(files):
        # A path has no NUL, and digests have one length, so no two sets of files look the same.
        digest.update(path.encode() + b"\0" + bytes.fromhex(stored.digest))
    return digest.hexdigest()
