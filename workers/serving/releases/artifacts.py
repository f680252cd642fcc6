"""Model files, copied into our own folder while their digest is computed: what was verified is what loads."""

import asyncio
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

_CHUNK = 1 << 20
_PART = ".part-"
_DIGEST = re.compile(r"[0-9a-f]{64}")


class ArtifactRefused(Exception):
    """The bytes are missing or not those that were approved."""


class Source(Protocol):
    """Another place to get bytes from."""

    def artifact(self, digest: str) -> AsyncIterator[bytes]:
        """Yield the bytes of an artifact."""


class Artifacts:
    """The cache of model files, filled from a local folder or from the dashboard."""

    def __init__(self, folder: Path, local: Path | None, remote: Source) -> None:
        self._folder, self._local, self._remote = folder, local, remote
        folder.mkdir(parents=True, exist_ok=True)
        for left_over in folder.glob(f"{_PART}*"):  # of a server that was killed while fetching
            left_over.unlink(missing_ok=True)

    async def obtain(self, digest: str, size: int) -> Path:
        """Return a file of ours with this digest, verified again each time.

        Raises:
            ArtifactRefused: no source has these very bytes.
            OSError: a source or the disk failed; later may be better.
        """
        if not _DIGEST.fullmatch(digest):
            raise ArtifactRefused(f"{digest[:80]!r} is not a sha256")
        path = self._folder / f"{digest}.keras"  # Keras goes by the ending
        if path.exists():
            if await asyncio.to_thread(_digest_of, path) == digest:
                return path
            path.unlink(missing_ok=True)
        await self._fetch(digest, size, path)
        return path

    def keep_only(self, digests: Collection[str]) -> None:
        """Delete files that no release needs any more."""
        for path in self._folder.glob("*.keras"):
            if path.stem not in digests:
                path.unlink(missing_ok=True)

    async def _fetch(self, digest: str, size: int, path: Path) -> None:
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=_PART)
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                found = await self._copy(digest, _Intake(file, size))
            if found != digest:
                raise ArtifactRefused(f"the bytes have digest {found}, approved was {digest}")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    async def _copy(self, digest: str, intake: "_Intake") -> str:
        local = self._local / digest[:2] / digest if self._local else None
        if local is not None and local.is_file():
            await asyncio.to_thread(intake.take_all, local)
        else:
            async for chunk in self._remote.artifact(digest):
                intake.take(chunk)
        return intake.digest()


class _Intake:
    """Writes chunks to a file, hashes them, and stops at more than were announced."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._room, self._size = file, size, size
        self._hasher = hashlib.sha256()

    def take(self, chunk: bytes) -> None:
        self._room -= len(chunk)
        if self._room < 0:
            raise ArtifactRefused(f"the file is longer than the approved {self._size} bytes")
        self._hasher.update(chunk)
        self._file.write(chunk)

    def take_all(self, path: Path) -> None:
        for chunk in _chunks(path):
            self.take(chunk)

    def digest(self) -> str:
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._hasher.hexdigest()


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _digest_of(path: Path) -> str:
    hasher = hashlib.sha256()
    for chunk in _chunks(path):
        hasher.update(chunk)
    return hasher.hexdigest()
