"""Writes a resumable upload's parts to one file, and computes its digest on the way.

The file's size is the number of bytes received, whatever was killed. Only one process appends at a time: it
holds a lock on the file, which ends with the process. The beginning of a part with a checksum is noted in a
second file until the checksum is verified; what follows it does not count.

The state of a digest cannot be stored. It is kept in memory between the parts; after a restart of the server
the digest is computed from the file.
"""

import base64
import binascii
import fcntl
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from jobs.atomic_files import create_once
from jobs.errors import BadInput, Conflict, NotFound, TrainyardError
from jobs.store import StoredFile, sha256_of, store

CHECKSUMS = ("sha1", "sha256")
UNVERIFIED = ".unverified"
SYNC_BYTES = 64 * 2**20
"""At most this many bytes in a part are not on the disk yet."""
SETTLE_SECONDS = 2.0
BUSY = "Another request sends a part of this upload, or uses it. Try again in a moment."
MOST_REMEMBERED = 1_000


class Locked(TrainyardError):
    """Another request appends to the upload or uses it; the client may ask again in a moment."""

    code, status = "locked", 423


class WrongChecksum(TrainyardError):
    """A part differs from its checksum; nothing was kept. The tus protocol defines the status."""

    code, status = "wrong_checksum", 460


class OnOtherServer(TrainyardError):
    """Another web server, with another folder, has the received bytes."""

    code, status = "on_other_server", 421


class TooLong(TrainyardError):
    """A part goes beyond its upload's length."""

    code, status = "too_large", 413


class Checksum(NamedTuple):
    """A part's checksum: its algorithm and its value."""

    algorithm: str
    value: bytes

    @classmethod
    def read(cls, text: str) -> "Checksum":
        """Parse a header's value such as `sha256 <base64>`.

        Raises:
            BadInput: the algorithm is unknown, or the value is not base64.
        """
        algorithm, _, value = text.strip().partition(" ")
        if algorithm not in CHECKSUMS:
            raise BadInput(f"Upload-Checksum: {algorithm[:40]!r} is not one of {', '.join(CHECKSUMS)}.")
        try:
            return cls(algorithm, base64.b64decode(value.strip(), validate=True))
        except (binascii.Error, ValueError) as error:
            raise BadInput("Upload-Checksum: the value is not base64.") from error


class _Digest(NamedTuple):
    """The digest over a file's first `size` bytes."""

    size: int
    state: "hashlib._Hash"


_digests: dict[str, _Digest] = {}
_remembering = threading.Lock()


def new_key() -> str:
    """Return a key for a new upload, which names the folder that will have its bytes."""
    return f"{secrets.token_hex(11)}-{_folder_identity()}"


def require_here(key: str) -> None:
    """Require that this machine's folder has an upload's bytes. Keys of earlier versions name no folder.

    Raises:
        OnOtherServer: the folder of another web server has them. Here their number would seem to be zero.
    """
    if "-" in key and key.rpartition("-")[2] != _folder_identity():
        raise OnOtherServer(
            "Another web server has the received bytes of this upload: the proxy must send all requests of "
            "an upload to the same server. Send the file again from its beginning, or ask the operator "
            "(guide: Behind a proxy, two web servers)."
        )


def _folder_identity() -> str:
    # Beside the folder, whose old files are deleted. Web servers with one folder have one identity.
    file = store().incoming.with_name(".incoming.id")
    if not file.exists():
        create_once(file, secrets.token_hex(4).encode())
    return file.read_text()


def path_of(key: str) -> Path:
    """Return an upload's file, which need not exist."""
    return store().incoming / key


def received_bytes(key: str) -> int:
    """Count the received bytes. Parts with an unverified checksum do not count."""
    try:
        size = path_of(key).stat().st_size
    except FileNotFoundError:
        return 0
    begin = _unverified_from(key)
    return size if begin is None else min(size, begin)


def _unverified_from(key: str) -> int | None:
    try:
        return int(path_of(key + UNVERIFIED).read_text())
    except FileNotFoundError:
        return None
    except ValueError:  # killed while it was written: nothing of the part had been
        return None


@contextmanager
def locked_file(key: str) -> Iterator[IO[bytes]]:
    """Lock an upload's file and remove an unverified part. A missing file is created.

    Raises:
        Locked: another request holds it.
    """
    with path_of(key).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(BUSY) from None
        if not _is_at(path_of(key), file):
            # It was deleted, or moved to the store, before the lock was acquired.
            raise Locked(BUSY)
        if (begin := _unverified_from(key)) is not None and begin < file.tell():
            file.truncate(begin)
        path_of(key + UNVERIFIED).unlink(missing_ok=True)
        file.seek(0, os.SEEK_END)
        yield file


def _is_at(path: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def wait_for_part(key: str, seconds: float = SETTLE_SECONDS) -> None:
    """Wait a moment until a part ends. Its client may have disconnected unnoticed."""
    deadline = time.monotonic() + seconds
    while path_of(key).exists() and time.monotonic() < deadline:
        with suppress(Locked), locked_file(key):
            return
        time.sleep(0.05)


def digest_of(key: str) -> StoredFile:
    """Return a received file's digest and size.

    The file is read only if this process has not received all of it.
    """
    size = path_of(key).stat().st_size
    with _remembering:
        digest = _digests.get(key)
    if digest is not None and digest.size == size:
        return StoredFile(digest.state.hexdigest(), size)
    return sha256_of(path_of(key))


def delete_file(key: str) -> None:
    """Delete an upload's file, if it is still there."""
    with _remembering:
        _digests.pop(key, None)
    for path in (path_of(key), path_of(key + UNVERIFIED)):
        path.unlink(missing_ok=True)


class Part:
    """Appends one part to an upload. Use it as a context manager: the file is locked meanwhile.

    Args:
        key: the upload's key.
        offset: how many bytes the client believes to have been received.
        length: the whole file's bytes.
        checksum: the part's checksum.
    """

    def __init__(self, key: str, *, offset: int, length: int, checksum: Checksum | None = None) -> None:
        self.key, self.begin, self.offset, self.length = key, offset, offset, length
        self._checksum = checksum
        self._check = hashlib.new(checksum.algorithm, usedforsecurity=False) if checksum else None
        self._unsynced = 0

    def __enter__(self) -> "Part":
        """Lock the file.

        Raises:
            Locked: another request holds it.
            Conflict: it has another number of bytes than the client believes.
        """
        with ExitStack() as lock:
            self._file = lock.enter_context(locked_file(self.key))
            self._require_offset()
            self._lock = lock.pop_all()
        return self

    def _require_offset(self) -> None:
        if (size := self._file.tell()) != self.begin:
            raise Conflict(f"Upload-Offset is {self.begin:,}, but {size:,} bytes have been received.")
        with _remembering:
            digest = _digests.pop(self.key, None)
        self._digest = digest.state if digest and digest.size == size else None
        if size == 0:
            self._digest = hashlib.sha256()
        self._before = self._digest.copy() if self._digest and self._checksum else None
        if self._checksum is not None:
            path_of(self.key + UNVERIFIED).write_text(str(self.begin))

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            TooLong: the file would have more bytes than it should; none of these is appended.
            NotFound: the file was deleted, so more bytes would take space that no quota counts.
            OSError: the disk is full; the bytes before the first one that did not fit are kept.
        """
        if self.offset + len(data) > self.length:
            raise TooLong(f"The upload has {self.length:,} bytes, and this part goes beyond them.")
        if not os.fstat(self._file.fileno()).st_nlink:
            raise NotFound("The upload was deleted.")
        view = memoryview(data)
        while view:
            # Unbuffered, so that all bytes that are counted are in the file.
            count = os.write(self._file.fileno(), view)
            if self._digest is not None:
                self._digest.update(view[:count])
            if self._check is not None:
                self._check.update(view[:count])
            self.offset += count
            self._unsynced += count
            view = view[count:]
        if self._unsynced >= SYNC_BYTES:
            self.sync()

    def sync(self) -> None:
        """Wait until all bytes are on the disk."""
        os.fdatasync(self._file.fileno())
        self._unsynced = 0

    def verify(self) -> None:
        """Compare the whole part with its checksum.

        Raises:
            WrongChecksum: it differs.
        """
        if self._checksum is None or self._check is None:
            return
        if self._check.digest() != self._checksum.value:
            raise WrongChecksum(f"The part does not have the given {self._checksum.algorithm} checksum.")
        self._checksum = None
        path_of(self.key + UNVERIFIED).unlink(missing_ok=True)

    def __exit__(self, *error: object) -> None:
        """Remove a part that is not verified, remember the digest so far, and unlock the file."""
        try:
            if self._checksum is not None:
                self._file.truncate(self.begin)
                path_of(self.key + UNVERIFIED).unlink(missing_ok=True)
                self._digest, self.offset = self._before, self.begin
            if self._digest is not None:
                self._remember(_Digest(self.offset, self._digest))
        finally:
            self._lock.close()

    def _remember(self, digest: _Digest) -> None:
        with _remembering:
            while len(_digests) >= MOST_REMEMBERED:
                del _digests[next(iter(_digests))]
            _digests[self.key] = digest
