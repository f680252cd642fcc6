"""Stores artifacts in object storage, with a folder as cache."""

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import fsspec

from jobs.errors import NotFound, NotOwned, StoreUnavailable
from jobs.store import cached_copies
from jobs.store.base import (
    OWNER,
    TRASH,
    Check,
    StoredFile,
    StoreEntry,
    is_digest,
    require_digest,
    sha256_of,
)
from jobs.store.checkpoint_copies import CheckpointCopies
from jobs.store.local import LocalStore
from jobs.store.permission import Permission, always_permitted
from jobs.store.uploading import move, upload, written_at

EVICTION_SECONDS = 60.0
DOWNLOADS = 2
REFRESH = 12 * 3600.0
"""An object that is older is uploaded again by `put`, which renews its time: it is in use."""


class ObjectStore:
    """Stores files at an fsspec URL (s3://, gs://, …), with a `LocalStore` as cache."""

    def __init__(
        self,
        url: str,
        cache_folder: Path,
        permission: Permission = always_permitted,
        *,
        limit: int = cached_copies.DEFAULT_LIMIT,
    ) -> None:
        self._limit = limit
        self.fs, self.root = fsspec.core.url_to_fs(url)
        self._require_permission = permission
        self.local = LocalStore(cache_folder)
        self._evicted = -EVICTION_SECONDS
        self.checkpoint_root = self.local.checkpoint_root
        self.incoming = self.local.incoming
        self.checkpoint_copies: CheckpointCopies | None = CheckpointCopies(self.fs, self.root, permission)

    def owner(self) -> str | None:
        """Return the owner's identity."""
        self.fs.invalidate_cache()
        try:
            return self.fs.cat_file(f"{self.root}/{OWNER}").decode().strip() or None
        except FileNotFoundError:
            return None

    def set_owner(self, identity: str) -> None:
        """Replace the object with the owner's identity."""
        with tempfile.TemporaryDirectory(dir=self.local.root) as folder:
            file = Path(folder) / OWNER
            file.write_text(f"{identity}\n")
            upload(self.fs, file, f"{self.root}/{OWNER}")

    def _place(self, digest: str) -> str:
        return f"{self.root}/{require_digest(digest)[:2]}/{digest}"

    def put(self, path: Path, *, size: int | None = None) -> StoredFile:
        """Upload a file unless it exists and is recent."""
        self._require_permission()
        return self._upload(self.local.put(path, size=size))

    def put_blocks(self, blocks: Iterable[bytes], *, check: Check | None = None) -> StoredFile:
        """Write the file to the cache, and upload it from there."""
        self._require_permission()
        return self._upload(self.local.put_blocks(blocks, check=check))

    def take(self, path: Path, file: StoredFile) -> None:
        """Move the file into the cache, and upload it from there."""
        self._require_permission()
        self.local.take(path, file)
        self._upload(file)

    def complete(self, file: StoredFile) -> None:
        """Upload the cached file unless that was done."""
        self._require_permission()
        self.path(file.digest)
        self._upload(file)

    def _upload(self, stored: StoredFile) -> StoredFile:
        place = self._place(stored.digest)
        self.fs.invalidate_cache()
        if not self.fs.exists(place) or written_at(self.fs.info(place)) < time.time() - REFRESH:
            # The copy, not the file itself: a runner may still write to that.
            upload(self.fs, self.local.path(stored.digest), place)
        self._limit_cache()
        return stored

    def path(self, digest: str) -> Path:
        """Return the cached file; download it first if necessary.

        Raises:
            NotFound: the store has no such file.
            StoreUnavailable: the download is cut or damaged, also when it is repeated.
        """
        try:
            path = self.local.path(digest)
            # The least recently used copies are evicted.
            os.utime(path)
            return path
        except (NotFound, FileNotFoundError):
            self.fs.invalidate_cache()
            place = self._place(digest)
            if not self.fs.exists(place):
                if not self.fs.exists(self._trashed(digest)):
                    raise NotFound(f"artifact {digest} is not in the store") from None
                place = self._take_from_trash(digest)
        self._download(digest, place)
        self._limit_cache()
        return self.local.path(digest)

    def _download(self, digest: str, place: str) -> None:
        """Bring an object into the cache. One with another digest is downloaded once more: it may be cut."""
        for _ in range(DOWNLOADS):
            with tempfile.TemporaryDirectory(dir=self.local.root, prefix=cached_copies.DOWNLOAD) as folder:
                target = Path(folder) / digest
                self.fs.get_file(place, str(target))
                received = sha256_of(target)
                # Any other content would be a file of the cache that nothing asked for.
                if received.digest == digest:
                    self.local.put(target)
                    return
        raise StoreUnavailable(
            f"{place} in the artifact store has another content than its name: {received.bytes} bytes with "
            f"the digest {received.digest[:12]}. It was downloaded {DOWNLOADS} times; look at the store."
        )

    def _limit_cache(self) -> None:
        """Evict copies now and then. Every process that adds copies does it, of web servers and workers."""
        if time.monotonic() >= self._evicted + EVICTION_SECONDS:
            self._evicted = time.monotonic()
            self.evict_copies()

    def evict_copies(self, folders: Iterable[Path] = ()) -> int:
        """Evict the least recently used copies and checkpoints in these folders; return how many."""
        return cached_copies.evict(self.local.root, self._limit, folders=folders)

    def _take_from_trash(self, digest: str) -> str:
        """Move an object back, and return its place. One of another installation is left where it is."""
        try:
            self._require_permission()
        except NotOwned:
            return self._trashed(digest)
        move(self.fs, self._trashed(digest), self._place(digest))
        return self._place(digest)

    def _trashed(self, digest: str) -> str:
        return f"{self.root}/{TRASH}/{require_digest(digest)}"

    def _list(self, folder: str) -> Iterator[StoreEntry]:
        self.fs.invalidate_cache()
        try:
            files = self.fs.find(folder, detail=True)
        except FileNotFoundError:
            return
        for name, info in files.items():
            digest = name.rsplit("/", 1)[-1]
            if is_digest(digest):
                yield StoreEntry(digest, int(info.get("size") or 0), written_at(info))

    def files(self) -> Iterator[StoreEntry]:
        """Yield all objects."""
        for folder in (f"{number:02x}" for number in range(256)):
            yield from self._list(f"{self.root}/{folder}")

    def discard(self, digest: str, *, stored_before: float) -> bool:
        """Move the object to the trash, and delete its copy in this machine's cache."""
        self._require_permission()
        place = self._place(digest)
        self.fs.invalidate_cache()
        if not self.fs.exists(place) or written_at(self.fs.info(place)) >= stored_before:
            return False
        move(self.fs, place, self._trashed(digest))
        self.local.discard(digest, stored_before=time.time() + 1)
        self.local.erase(digest)
        return True

    def trash(self) -> Iterator[StoreEntry]:
        """Yield the objects in the trash."""
        yield from self._list(f"{self.root}/{TRASH}")

    def erase(self, digest: str) -> None:
        """Remove the object from the trash."""
        self._require_permission()
        if self.fs.exists(self._trashed(digest)):
            self.fs.rm_file(self._trashed(digest))

    def erase_incomplete(self, *, before: float) -> None:
        """Remove incomplete copies in the cache; object storage keeps no incomplete objects."""
        self.local.erase_incomplete(before=before)
