"""Stores artifacts by their sha256 digest, in a local folder or in object storage."""

import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

import fsspec
from django.conf import settings

from jobs.errors import NotFound

_BLOCK = 1 << 20


class StoredFile(NamedTuple):
    """The digest and the size of a stored file."""

    digest: str
    bytes: int


class ArtifactStore(Protocol):
    """Content-addressed, write-once storage. Digests are lower-case hexadecimal sha256.

    In every implementation, `put` is atomic and idempotent, and stored files can be read until they are
    deleted.

    Attributes:
        checkpoint_root: the local folder in which checkpoints are stored.
    """

    checkpoint_root: Path

    def put(self, path: Path) -> StoredFile:
        """Copy a local file into the store and return its digest and size."""

    def path(self, digest: str) -> Path:
        """Return a local, read-only file with the content of a digest.

        Raises:
            NotFound: the store has no such file.
        """

    def delete(self, digest: str) -> None:
        """Delete a file if it exists."""


def sha256_of(path: Path) -> StoredFile:
    """Compute the digest and the size of a file."""
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return StoredFile(digest.hexdigest(), size)


def _check(digest: str) -> str:
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise NotFound(f"{digest[:80]!r} is not a sha256 digest")
    return digest


class LocalStore:
    """Stores files in a folder as `<root>/<first two digits>/<digest>`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.checkpoint_root = root / "checkpoints"
        self.checkpoint_root.mkdir(parents=True, exist_ok=True)

    def _place(self, digest: str) -> Path:
        return self.root / _check(digest)[:2] / digest

    def put(self, path: Path) -> StoredFile:
        """Copy, sync, then rename, so that a crash leaves at most a temporary file."""
        stored = sha256_of(path)
        place = self._place(stored.digest)
        if place.exists():
            return stored
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".put-", delete=False) as target:
            try:
                with path.open("rb") as source:
                    shutil.copyfileobj(source, target, _BLOCK)
                target.flush()
                os.fsync(target.fileno())
                Path(target.name).replace(place)
            except OSError:
                Path(target.name).unlink(missing_ok=True)
                raise
        return stored

    def path(self, digest: str) -> Path:
        """Return the stored file."""
        place = self._place(digest)
        if not place.is_file():
            raise NotFound(f"artifact {digest} is not in the store")
        return place

    def delete(self, digest: str) -> None:
        """Remove the file."""
        self._place(digest).unlink(missing_ok=True)


class ObjectStore:
    """Stores files at an fsspec URL (s3://, gs://, …), with a `LocalStore` as cache."""

    def __init__(self, url: str, cache_folder: Path) -> None:
        self.fs, self.root = fsspec.core.url_to_fs(url)
        self.local = LocalStore(cache_folder)
        self.checkpoint_root = self.local.checkpoint_root

    def _place(self, digest: str) -> str:
        return f"{self.root}/{_check(digest)[:2]}/{digest}"

    def put(self, path: Path) -> StoredFile:
        """Upload a file unless it exists."""
        stored = self.local.put(path)
        if not self.fs.exists(self._place(stored.digest)):
            self.fs.put_file(str(path), self._place(stored.digest))
        return stored

    def path(self, digest: str) -> Path:
        """Return the cached file; download it first if necessary."""
        try:
            return self.local.path(digest)
        except NotFound:
            if not self.fs.exists(self._place(digest)):
                raise
        with tempfile.TemporaryDirectory(dir=self.local.root) as folder:
            target = Path(folder) / digest
            self.fs.get_file(self._place(digest), str(target))
            self.local.put(target)
        return self.local.path(digest)

    def delete(self, digest: str) -> None:
        """Delete the object and its cached copy."""
        self.local.delete(digest)
        if self.fs.exists(self._place(digest)):
            self.fs.rm_file(self._place(digest))


@cache
def _store(url: str, home: str) -> ArtifactStore:
    if "://" in url:
        return ObjectStore(url, Path(home) / "artifact-cache")
    return LocalStore(Path(url))


def store() -> ArtifactStore:
    """Return the installation's store (`TRAINYARD_ARTIFACTS`: a folder or an fsspec URL)."""
    return _store(str(settings.TRAINYARD_ARTIFACTS), str(settings.TRAINYARD_HOME))
