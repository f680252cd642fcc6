"""Defines the protocol of an artifact store, and computes the digests that name its files."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from jobs.errors import NotFound
from jobs.store.checkpoint_copies import CheckpointCopies

_BLOCK = 1 << 20


TRASH = ".trash"
OWNER = ".installation"
"""The file with the identity of the installation that a store belongs to."""


class StoredFile(NamedTuple):
    """A stored file's digest and size."""

    digest: str
    bytes: int


type Check = Callable[[StoredFile, Path], object]
"""Receives a complete file and where to read it, before the store has it; raises if it is refused."""


class StoreEntry(NamedTuple):
    """A stored file, and when it was last stored (or moved to the trash), in seconds since 1970."""

    digest: str
    bytes: int
    time: float


class ArtifactStore(Protocol):
    """Content-addressed, write-once storage. Digests are lower-case hexadecimal sha256.

    In every implementation, `put` is atomic and idempotent, and renews the time of a file that exists. A file
    is deleted in two steps: `discard` moves it to the trash, where `path` still finds it, and `erase` removes
    it from there. So a file that is stored again while it is being deleted is never lost.

    Attributes:
        checkpoint_root: the local folder in which checkpoints are stored.
        checkpoint_copies: stores copies of checkpoints for other machines; None if all machines that use the
            store have the same folder of checkpoints.
        incoming: the local folder for files that arrive in parts, from which `take` moves them.
    """

    checkpoint_root: Path
    checkpoint_copies: CheckpointCopies | None
    incoming: Path

    def owner(self) -> str | None:
        """Return the identity of the installation that the store belongs to; None if it has none."""

    def set_owner(self, identity: str) -> None:
        """Let the store belong to an installation."""

    def put(self, path: Path, *, size: int | None = None) -> StoredFile:
        """Copy a local file into the store and return its digest and size.

        Args:
            path: the file.
            size: the bytes that it should have, if that was checked before.

        Raises:
            OSError: it has another size, or changes while it is stored.
        """

    def put_blocks(self, blocks: Iterable[bytes], *, check: Check | None = None) -> StoredFile:
        """Store an iterator's blocks, and return their digest and size.

        If the iterator or the check raises, or the process is killed before, nothing is kept.

        Args:
            blocks: the content.
            check: is called with the complete file.
        """

    def take(self, path: Path, file: StoredFile) -> None:
        """Move a file from the folder `incoming` into the store, without copying its bytes.

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
        """Return a local, read-only file with a digest's content.

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
    """Compute the digest and a file's size.

    Args:
        path: the file.
        size: the bytes that it should have; None accepts any number.

    Raises:
        OSError: it has another size.
    """
    digest = hashlib.sha256()
    total = 0
    with path.open("rb") as file:
        for block in blocks_of(file, path, size):
            digest.update(block)
            total += len(block)
    return StoredFile(digest.hexdigest(), total)


def blocks_of(file: IO[bytes], path: Path, size: int | None) -> Iterator[bytes]:
    """Yield a file in blocks, since it may not fit into memory.

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


def require_digest(digest: str) -> str:
    """Return a sha256 digest.

    Raises:
        NotFound: the text is none.
    """
    # The digest becomes part of a path. Any other text, such as "../..", could leave the store.
    if not is_digest(digest):
        raise NotFound(f"{digest[:80]!r} is not a sha256 digest")
    return digest
