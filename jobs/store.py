"""Stores artifacts by their sha256 digest, in a local folder or in object storage."""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import fsspec
from django.conf import settings

from jobs.errors import NotFound

_BLOCK = 1 << 20
_UNNAMED = os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC if hasattr(os, "O_TMPFILE") else None
TRASH = ".trash"
REFRESH = 12 * 3600.0
"""An object that is older is uploaded again by `put`, which renews its time: it is in use."""


class StoredFile(NamedTuple):
    """The digest and the size of a stored file."""

    digest: str
    bytes: int


type Check = Callable[[StoredFile, Path], object]
"""Receives a complete file and where to read it, before it is part of the store; raises if it is refused."""


class StoreEntry(NamedTuple):
    """A stored file, and when it was last stored (or moved to the trash), in seconds since 1970."""

    digest: str
    bytes: int
    time: float


class ArtifactStore(Protocol):
    """Content-addressed, write-once storage. Digests are lower-case hexadecimal sha256.

    In every implementation, `put` is atomic and idempotent, and renews the time of a file that exists. A file
    is deleted in two steps: `discard` moves it to the trash, where `path` still finds it, and `erase` removes
    it from there. So a file that is stored again at the moment of its deletion is never lost.

    Attributes:
        checkpoint_root: the local folder in which checkpoints are stored.
        incoming: the local folder for files that arrive in parts, from which `take` moves them.
    """

    checkpoint_root: Path
    incoming: Path

    def put(self, path: Path, *, size: int | None = None) -> StoredFile:
        """Copy a local file into the store and return its digest and size.

        Args:
            path: the file.
            size: the bytes that it should have, if that was checked before.

        Raises:
            OSError: it has another size, or changes while it is stored.
        """

    def put_blocks(self, blocks: Iterable[bytes], *, check: Check | None = None) -> StoredFile:
        """Store the blocks of an iterator, and return their digest and size.

        If the iterator or the check raises, or the process is killed before, nothing is kept.

        Args:
            blocks: the content.
            check: is called with the complete file.
        """

    def take(self, path: Path, file: StoredFile) -> None:
        """Move a file of the folder `incoming` into the store, without a copy of its bytes.

        Args:
            path: the file, which nothing writes to any more.
            file: its digest and size.
        """

    def complete(self, file: StoredFile) -> None:
        """Complete a `take` that moved its file but may have been interrupted after that. It may be repeated.

        Raises:
            NotFound: the file was not moved.
        """

    def path(self, digest: str) -> Path:
        """Return a local, read-only file with the content of a digest.

        Raises:
            NotFound: the store has no such file.
        """

    def files(self) -> Iterator[StoreEntry]:
        """Yield all files, without those in the trash."""

    def discard(self, digest: str, *, stored_before: float) -> bool:
        """Move a file to the trash unless it was stored after this time; return whether it was moved."""

    def trash(self) -> Iterator[StoreEntry]:
        """Yield the files in the trash."""

    def erase(self, digest: str) -> None:
        """Remove a file from the trash."""

    def erase_incomplete(self, *, before: float) -> None:
        """Remove copies that were begun before this time and never completed."""


def is_digest(text: str) -> bool:
    """Return whether a text is a sha256 digest in lower-case hexadecimal."""
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def sha256_of(path: Path, *, size: int | None = None) -> StoredFile:
    """Compute the digest and the size of a file.

    Args:
        path: the file.
        size: the bytes that it should have; None accepts any number.

    Raises:
        OSError: it has another size.
    """
    digest = hashlib.sha256()
    total = 0
    with path.open("rb") as file:
        for block in _blocks(file, path, size):
            digest.update(block)
            total += len(block)
    return StoredFile(digest.hexdigest(), total)


def _blocks(file: IO[bytes], path: Path, size: int | None) -> Iterator[bytes]:
    """Yield a file in blocks, since it may be larger than the memory.

    A runner may enlarge its file after its size was checked: a sparse file of exabytes takes no space, but
    years to read.
    """
    total = 0
    while block := file.read(_BLOCK):
        total += len(block)
        if size is not None and total > size:
            break
        yield block
    if size is not None and total != size:
        raise OSError(f"{path} changed while it was stored")


def _require_digest(digest: str) -> str:
    # The digest becomes part of a path. Any other text, such as "../..", could leave the store.
    if not is_digest(digest):
        raise NotFound(f"{digest[:80]!r} is not a sha256 digest")
    return digest


class LocalStore:
    """Stores files in a folder as `<root>/<first two digits>/<digest>`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.checkpoint_root = root / "checkpoints"
        # The name begins with a dot, as those of all incomplete files: a backup has none of them.
        self.incoming = root / ".incoming"
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.checkpoint_root, self.incoming):
            folder.mkdir(mode=0o700, exist_ok=True)

    def _place(self, digest: str) -> Path:
        return self.root / _require_digest(digest)[:2] / digest

    def put(self, path: Path, *, size: int | None = None) -> StoredFile:
        """Copy, sync, then rename, so that a crash leaves at most a temporary file."""
        stored = sha256_of(path, size=size)
        place = self._place(stored.digest)
        try:
            os.utime(place)
        except FileNotFoundError:
            self._copy(path, place, stored)
        return stored

    def take(self, path: Path, file: StoredFile) -> None:
        """Sync, then rename: the folder is in the same file system."""
        place = self._place(file.digest)
        try:
            os.utime(place)
        except FileNotFoundError:
            with path.open("rb") as source:
                os.fsync(source.fileno())
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The collection would delete a file whose parts arrived long ago.
            os.utime(path)
            path.replace(place)
        else:
            path.unlink()

    def complete(self, file: StoredFile) -> None:
        """Renew the time of the file: the move is all that `take` does."""
        os.utime(self.path(file.digest))

    def _copy(self, path: Path, place: Path, stored: StoredFile) -> None:
        copied = hashlib.sha256()
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # In the folder of the final file, because a rename is atomic only within a file system.
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".put-", delete=False) as target:
            try:
                with path.open("rb") as source:
                    for block in _blocks(source, path, stored.bytes):
                        copied.update(block)
                        target.write(block)
                # A runner may still write to its file. The store must have no other content under a digest.
                if copied.hexdigest() != stored.digest:
                    raise OSError(f"{path} changed while it was stored")
                target.flush()
                os.fsync(target.fileno())
                Path(target.name).replace(place)
            except OSError:
                # The disk may be full: the incomplete copy must not keep its space.
                Path(target.name).unlink(missing_ok=True)
                raise

    def put_blocks(self, blocks: Iterable[bytes], *, check: Check | None = None) -> StoredFile:
        """Write a file without a name, and give it one once it is complete, checked and synced."""
        descriptor, temporary = self._new_file()
        try:
            with os.fdopen(descriptor, "wb") as target:
                digest = hashlib.sha256()
                for block in blocks:
                    digest.update(block)
                    target.write(block)
                target.flush()
                stored = StoredFile(digest.hexdigest(), target.tell())
                written = temporary or Path(f"/proc/self/fd/{descriptor}")
                if check is not None:
                    check(stored, written)
                os.fsync(descriptor)
                self._give_name(written, stored.digest)
        finally:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
        return stored

    def _new_file(self) -> tuple[int, Path | None]:
        """Return a file that is gone when it is closed, also by a kill, where the file system can do that.

        Elsewhere it has the path that is returned too, which `erase_incomplete` finds after a kill.
        """
        if _UNNAMED is not None:
            with suppress(OSError):
                return os.open(self.root, _UNNAMED, 0o600), None
        folder = self.root / "00"
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".put-")
        return descriptor, Path(name)

    def _give_name(self, source: Path, digest: str) -> None:
        place = self._place(digest)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # With the descriptor of a folder: only then `os.link` follows the link in /proc.
            os.link(source, digest, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
        except FileExistsError:
            os.utime(place)
        finally:
            os.close(folder)

    def path(self, digest: str) -> Path:
        """Return the stored file. A file in the trash is moved back."""
        place = self._place(digest)
        if not place.is_file():
            try:
                (self.root / TRASH / digest).replace(place)
            except FileNotFoundError:
                if not place.is_file():  # another process may have moved it back
                    raise NotFound(f"artifact {digest} is not in the store") from None
        return place

    def files(self) -> Iterator[StoreEntry]:
        """Yield all files."""
        for folder in sorted(self.root.glob("[0-9a-f][0-9a-f]")):
            yield from _entries(folder)

    def discard(self, digest: str, *, stored_before: float) -> bool:
        """Move the file to the trash. Its time there is that of the move."""
        place = self._place(digest)
        trash = self.root / TRASH
        trash.mkdir(mode=0o700, exist_ok=True)
        try:
            if place.stat().st_mtime >= stored_before:
                return False
            place.replace(trash / digest)
            os.utime(trash / digest)
        except FileNotFoundError:
            return False
        return True

    def trash(self) -> Iterator[StoreEntry]:
        """Yield the files in the trash."""
        yield from _entries(self.root / TRASH)

    def erase(self, digest: str) -> None:
        """Remove the file from the trash."""
        (self.root / TRASH / _require_digest(digest)).unlink(missing_ok=True)

    def erase_incomplete(self, *, before: float) -> None:
        """Remove old temporary files of `put`."""
        for path in self.root.glob("[0-9a-f][0-9a-f]/.put-*"):
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)


def _entries(folder: Path) -> Iterator[StoreEntry]:
    try:
        with os.scandir(folder) as listing:
            entries = [entry for entry in listing if is_digest(entry.name)]
    except FileNotFoundError:
        return
    for entry in entries:
        try:
            facts = entry.stat()
        except FileNotFoundError:
            continue  # removed since it was listed
        yield StoreEntry(entry.name, facts.st_size, facts.st_mtime)


class ObjectStore:
    """Stores files at an fsspec URL (s3://, gs://, …), with a `LocalStore` as cache."""

    def __init__(self, url: str, cache_folder: Path) -> None:
        self.fs, self.root = fsspec.core.url_to_fs(url)
        self.local = LocalStore(cache_folder)
        self.checkpoint_root = self.local.checkpoint_root
        self.incoming = self.local.incoming

    def _place(self, digest: str) -> str:
        return f"{self.root}/{_require_digest(digest)[:2]}/{digest}"

    def put(self, path: Path, *, size: int | None = None) -> StoredFile:
        """Upload a file unless it exists and is recent."""
        return self._upload(self.local.put(path, size=size))

    def put_blocks(self, blocks: Iterable[bytes], *, check: Check | None = None) -> StoredFile:
        """Write the file to the cache, and upload it from there."""
        return self._upload(self.local.put_blocks(blocks, check=check))

    def take(self, path: Path, file: StoredFile) -> None:
        """Move the file into the cache, and upload it from there."""
        self.local.take(path, file)
        self._upload(file)

    def complete(self, file: StoredFile) -> None:
        """Upload the cached file unless that was done."""
        self.path(file.digest)
        self._upload(file)

    def _upload(self, stored: StoredFile) -> StoredFile:
        place = self._place(stored.digest)
        self.fs.invalidate_cache()
        if not self.fs.exists(place) or _time_of(self.fs.info(place)) < time.time() - REFRESH:
            # The copy, not the file itself: a runner may still write to that.
            self.fs.put_file(str(self.local.path(stored.digest)), place)
        return stored

    def path(self, digest: str) -> Path:
        """Return the cached file; download it first if necessary."""
        try:
            return self.local.path(digest)
        except NotFound:
            self.fs.invalidate_cache()
            if not self.fs.exists(self._place(digest)):
                if not self.fs.exists(self._trashed(digest)):
                    raise
                self.fs.mv(self._trashed(digest), self._place(digest))
        with tempfile.TemporaryDirectory(dir=self.local.root) as folder:
            target = Path(folder) / digest
            self.fs.get_file(self._place(digest), str(target))
            # `put` computes the digest again, so a damaged download is never served under this digest.
            self.local.put(target)
        return self.local.path(digest)

    def _trashed(self, digest: str) -> str:
        return f"{self.root}/{TRASH}/{_require_digest(digest)}"

    def _list(self, folder: str) -> Iterator[StoreEntry]:
        self.fs.invalidate_cache()
        try:
            files = self.fs.find(folder, detail=True)
        except FileNotFoundError:
            return
        for name, info in files.items():
            digest = name.rsplit("/", 1)[-1]
            if is_digest(digest):
                yield StoreEntry(digest, int(info.get("size") or 0), _time_of(info))

    def files(self) -> Iterator[StoreEntry]:
        """Yield all objects."""
        for folder in (f"{number:02x}" for number in range(256)):
            yield from self._list(f"{self.root}/{folder}")

    def discard(self, digest: str, *, stored_before: float) -> bool:
        """Move the object to the trash, and delete its copy in this machine's cache."""
        place = self._place(digest)
        self.fs.invalidate_cache()
        if not self.fs.exists(place) or _time_of(self.fs.info(place)) >= stored_before:
            return False
        self.fs.mv(place, self._trashed(digest))
        self.local.discard(digest, stored_before=time.time() + 1)
        self.local.erase(digest)
        return True

    def trash(self) -> Iterator[StoreEntry]:
        """Yield the objects in the trash."""
        yield from self._list(f"{self.root}/{TRASH}")

    def erase(self, digest: str) -> None:
        """Remove the object from the trash."""
        if self.fs.exists(self._trashed(digest)):
            self.fs.rm_file(self._trashed(digest))

    def erase_incomplete(self, *, before: float) -> None:
        """Remove incomplete copies in the cache; object storage keeps no incomplete objects."""
        self.local.erase_incomplete(before=before)


def _time_of(info: dict[str, Any]) -> float:
    """Return when an object was written. If unknown, it is now, so that the object is kept."""
    for key in ("LastModified", "last_modified", "updated", "mtime", "created"):
        match info.get(key):
            case datetime() as moment:
                return moment.timestamp()
            case int() | float() as seconds:
                return float(seconds)
            case str() as text:
                return datetime.fromisoformat(text).timestamp()
    return time.time()


# The settings are arguments, because tests change them.
@cache
def _store(url: str, home: str) -> ArtifactStore:
    if "://" in url:
        return ObjectStore(url, Path(home) / "artifact-cache")
    return LocalStore(Path(url))


def store() -> ArtifactStore:
    """Return the installation's store (`TRAINYARD_ARTIFACTS`: a folder or an fsspec URL)."""
    return _store(str(settings.TRAINYARD_ARTIFACTS), str(settings.TRAINYARD_HOME))
