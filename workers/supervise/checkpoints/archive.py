"""Packs a checkpoint into one file and unpacks it. Every file is compared with the manifest on the way.

The runner may have written anything: links are not followed, and only files that the manifest names are read
or written.
"""

import errno
import hashlib
import io
import os
import shutil
import tarfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from jobs.messages.checkpoint_manifest import MANIFEST, MAX_MANIFEST_BYTES, FilePart, Manifest
from jobs.runner_files import open_regular, opened_parent

UNFINISHED = ".fetched-"
"""The beginning of the names of folders into which an archive is being unpacked."""
_BLOCK = 1 << 20


class Damaged(ValueError):
    """A checkpoint is not the one that its manifest describes, or is not there."""


def is_intact(root: Path, folder: str, manifest: str) -> bool:
    """Return whether a checkpoint is on this machine, complete and unchanged.

    Args:
        root: the folder with all checkpoints.
        folder: the checkpoint's, below the root.
        manifest: the SHA-256 of its manifest.
    """
    try:
        with _opened(root, folder, manifest) as (_, parts, files):
            return all(_digest(files[name], part.bytes) == part.sha256 for name, part in parts.items())
    except (Damaged, OSError):
        return False


def pack(root: Path, folder: str, manifest: str, archive: Path) -> None:
    """Write a checkpoint's files into an archive.

    Args:
        root, folder, manifest: see `is_intact`.
        archive: the file to write.

    Raises:
        Damaged: the checkpoint is not there, or its files do not match the manifest.
        OSError: the disk is full.
    """
    # All files are opened first: the runner may delete the folder once it has written newer checkpoints.
    with _opened(root, folder, manifest) as (body, parts, files), tarfile.open(archive, "w") as tar:
        _add(tar, MANIFEST, io.BytesIO(body), FilePart(bytes=len(body), sha256=manifest))
        for name, part in parts.items():
            _add(tar, name, files[name], part)


def unpack(archive: Path, root: Path, folder: str, manifest: str) -> None:
    """Write an archive's files into the checkpoint's folder, which appears when it is complete.

    Args:
        archive: the file to read.
        root, folder, manifest: see `is_intact`. A damaged folder is replaced.

    Raises:
        Damaged: the archive is not complete, or does not match the manifest.
        OSError: the disk is full.
    """
    with _made_parent(root, folder) as (parent, name):
        # Beside its final place, so that it inherits the same access control list.
        unfinished = f"{UNFINISHED}{uuid.uuid4().hex}"
        os.mkdir(unfinished, dir_fd=parent)
        try:
            place = os.open(unfinished, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
            try:
                _extract(archive, place, manifest)
                os.fsync(place)
            finally:
                os.close(place)
            shutil.rmtree(name, dir_fd=parent, ignore_errors=True)
            os.rename(unfinished, name, src_dir_fd=parent, dst_dir_fd=parent)
            os.fsync(parent)
        finally:
            shutil.rmtree(unfinished, dir_fd=parent, ignore_errors=True)


@contextmanager
def _made_parent(root: Path, folder: str) -> Iterator[tuple[int, str]]:
    """Open the folder above a checkpoint's, and make it if it is missing; yield it and the name below it.

    Runners of the same job write there: a link that one has left leads to a place that is not theirs.
    """
    root.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        try:
            parent, name = opened.enter_context(opened_parent(root, folder, create=True))
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise Damaged(f"a link or a file is in the place of a folder above {folder}") from error
        yield parent, name


@contextmanager
def _opened(
    root: Path, folder: str, manifest: str
) -> Iterator[tuple[bytes, Mapping[str, FilePart], Mapping[str, IO[bytes]]]]:
    """Open a checkpoint's files; yield its manifest's bytes, the parts that it names, and their files."""

    def open_file(name: str) -> IO[bytes]:
        try:
            return opened.enter_context(os.fdopen(open_regular(root, f"{folder}/{name}"), "rb"))
        except (OSError, ValueError) as error:
            raise Damaged(f"{name} of checkpoint {folder} cannot be read: {error}") from error

    with ExitStack() as opened:
        body = open_file(MANIFEST).read(MAX_MANIFEST_BYTES)
        parts = _parts(body, manifest)
        yield body, parts, {name: open_file(name) for name in parts}


def _parts(body: bytes, manifest: str) -> Mapping[str, FilePart]:
    if hashlib.sha256(body).hexdigest() != manifest:
        raise Damaged("the manifest is another one")
    try:
        return Manifest.model_validate_json(body).parts()
    except ValidationError as error:
        raise Damaged(f"the manifest is not valid: {error.errors()[0]['msg']}") from error


def _digest(file: IO[bytes], size: int) -> str:
    digest = hashlib.sha256()
    while size > 0 and (block := file.read(min(size, _BLOCK))):
        digest.update(block)
        size -= len(block)
    return digest.hexdigest()


class _Hashed:
    """Computes the digest of a file while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest: Any = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self.digest.update(block)
        return block


def _add(tar: tarfile.TarFile, name: str, file: IO[bytes], part: FilePart) -> None:
    member = tarfile.TarInfo(name)
    member.size = part.bytes
    hashed = _Hashed(file)
    try:
        tar.addfile(member, hashed)
    except OSError as error:
        # `tarfile` raises one without a number if the file is too short.
        if error.errno is not None:
            raise
        raise Damaged(f"{name} is shorter than in its manifest") from error
    if hashed.digest.hexdigest() != part.sha256:
        raise Damaged(f"{name} does not match its manifest")


def _extract(archive: Path, target: int, manifest: str) -> None:
    """Write an archive's files into the folder with this descriptor."""
    try:
        with tarfile.open(archive, "r:") as tar:
            first = tar.next()
            if first is None or first.name != MANIFEST or not 0 < first.size <= MAX_MANIFEST_BYTES:
                raise Damaged("the copy does not begin with a manifest")
            body = _content(tar, first).read()
            missing = dict(_parts(body, manifest))
            _write(target, MANIFEST, io.BytesIO(body), FilePart(bytes=len(body), sha256=manifest))
            while (member := tar.next()) is not None:
                if (part := missing.pop(member.name, None)) is None or member.size != part.bytes:
                    raise Damaged(f"its manifest does not name the file {member.name[:100]!r} of the copy")
                _write(target, member.name, _content(tar, member), part)
    except tarfile.TarError as error:
        raise Damaged(f"the copy is not complete: {error}") from error
    if missing:
        raise Damaged(f"the copy is not complete: {sorted(missing)[0]} is missing")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(member) if member.isreg() else None
    if content is None:
        raise Damaged(f"{member.name[:100]!r} in the copy is not a file")
    return content


def _write(folder: int, name: str, content: IO[bytes], part: FilePart) -> None:
    hashed = _Hashed(content)
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        shutil.copyfileobj(hashed, file, _BLOCK)
        file.flush()
        # A runner with another user reads it. It cannot enter the folders of other jobs.
        os.fchmod(descriptor, 0o644)
        os.fsync(descriptor)
    if hashed.digest.hexdigest() != part.sha256:
        raise Damaged(f"{name} in the copy does not match its manifest")
