"""Stores artifacts in a folder."""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from jobs.errors import NotFound, NotOwned
from jobs.store.base import (
    OWNER,
    TRASH,
    Check,
    StoredFile,
    StoreEntry,
    blocks_of,
    is_digest,
    require_digest,
    sha256_of,
)
from jobs.store.checkpoint_copies import CheckpointCopies
from jobs.store.permission import Permission, always_permitted

_UNNAMED = os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC if hasattr(os, "O_TMPFILE") else None


class LocalStore:
    """Stores files in a folder as `<root>/<first two digits>/<digest>`."""

    def __init__(self, root: Path, permission: Permission = always_permitted) -> None:
        self.root = root
        self._require_permission = permission
        self.checkpoint_root = root / "checkpoints"
        # All machines with the folder have the checkpoints.
        self.checkpoint_copies: CheckpointCopies | None = None
        # The name begins with a dot, as for all incomplete files, which a backup leaves out.
        self.incoming = root / ".incoming"
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.checkpoint_root, self.incoming):
            folder.mkdir(mode=0o700, exist_ok=True)

    def owner(self) -> str | None:
        """Return the owner's identity."""
        try:
            return (self.root / OWNER).read_text().strip() or None
        except FileNotFoundError:
            return None

    def set_owner(self, identity: str) -> None:
        """Replace the file with the owner's identity."""
        with tempfile.NamedTemporaryFile("w", dir=self.root, prefix=f"{OWNER}-", delete=False) as file:
            file.write(f"{identity}\n")
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(self.root / OWNER)

    def _place(self, digest: str) -> Path:
        return self.root / require_digest(digest)[:2] / digest

    def put(self, path: Path, *, size: int | None = None) -> StoredFile:
        """Copy, sync, then rename, so that a crash leaves at most a temporary file."""
        self._require_permission()
        stored = sha256_of(path, size=size)
        place = self._place(stored.digest)
        try:
            os.utime(place)
        except FileNotFoundError:
            self._copy(path, place, stored)
        return stored

    def take(self, path: Path, file: StoredFile) -> None:
        """Sync, then rename: the folder is in the same file system."""
        self._require_permission()
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
        """Renew the file's time: `take` has only moved it."""
        os.utime(self.path(file.digest))

    def _copy(self, path: Path, place: Path, stored: StoredFile) -> None:
        copied = hashlib.sha256()
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # In the folder of the final file, because a rename is atomic only within a file system.
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".put-", delete=False) as target:
            try:
                with path.open("rb") as source:
                    for block in blocks_of(source, path, stored.bytes):
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
        self._require_permission()
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
        """Return a file that vanishes when it is closed, also by a kill if the file system supports that.

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
                self._require_permission()
                (self.root / TRASH / digest).replace(place)
            except FileNotFoundError:
                if not place.is_file():  # another process may have moved it back
                    raise NotFound(f"artifact {digest} is not in the store") from None
            except NotOwned:
                if not (self.root / TRASH / digest).is_file():
                    raise NotFound(f"artifact {digest} is not in the store") from None
                return self.root / TRASH / digest
        return place

    def files(self) -> Iterator[StoreEntry]:
        """Yield all files."""
        for folder in sorted(self.root.glob("[0-9a-f][0-9a-f]")):
            yield from _entries(folder)

    def discard(self, digest: str, *, stored_before: float) -> bool:
        """Move the file to the trash. Its time there is the time of the move."""
        self._require_permission()
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
        self._require_permission()
        (self.root / TRASH / require_digest(digest)).unlink(missing_ok=True)

    def erase_incomplete(self, *, before: float) -> None:
        """Remove old temporary files of `put`."""
        self._require_permission()
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
