"""Caches model files, and verifies their digests.

A file is hashed while it is copied to the cache, so the verified bytes are the ones that are loaded.
"""

import asyncio
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import BinaryIO, Protocol

from jobs.spec.exports import STORED

MODEL, CODE = STORED.suffix, ".code"
"""The suffixes of cached files. Keras detects the format of a model by it."""
LOADING = ".load-"
"""Prefix of the folders with files of loads that are under way."""
_CHUNK = 1 << 20
_PART = ".part-"
_DIGEST = re.compile(r"[0-9a-f]{64}")


class ArtifactRefused(Exception):
    """The file is missing, or its bytes are not the approved ones."""


class RemoteStore(Protocol):
    """Delivers artifacts over the network."""

    def artifact(self, digest: str) -> AsyncIterator[bytes]:
        """Yield an artifact's bytes in chunks."""


class Artifacts:
    """A cache for model files that is filled from a local folder or from the dashboard."""

    def __init__(self, folder: Path, local: Path | None, remote: RemoteStore) -> None:
        self._folder, self._local, self._remote = folder, local, remote
        folder.mkdir(parents=True, exist_ok=True)
        # Left by a server that was killed while it fetched or loaded a file.
        for partial in folder.glob(f"{_PART}*"):
            partial.unlink(missing_ok=True)
        for loading in folder.glob(f"{LOADING}*"):
            shutil.rmtree(loading, ignore_errors=True)

    async def obtain(self, digest: str, size: int, suffix: str = MODEL) -> Path:
        """Return the path to a cached file with this digest. The digest is verified on every call.

        Args:
            digest: the file's SHA-256.
            size: its bytes.
            suffix: `MODEL` or `CODE`.

        Raises:
            ArtifactRefused: no source has exactly these bytes.
            OSError: a source or the disk failed; the call may be retried.
        """
        if not _DIGEST.fullmatch(digest):
            raise ArtifactRefused(f"{digest[:80]!r} is not a sha256")
        path = self._folder / f"{digest}{suffix}"
        if path.exists():
            # The file may have been damaged or replaced since it was cached.
            if await asyncio.to_thread(_digest_of, path) == digest:
                return path
            path.unlink(missing_ok=True)
        await self._fetch(digest, size, path)
        return path

    def keep_only(self, digests: Collection[str]) -> None:
        """Delete the files with other digests."""
        for suffix in (MODEL, CODE):
            for path in self._folder.glob(f"*{suffix}"):
                if path.stem not in digests:
                    path.unlink(missing_ok=True)

    async def _fetch(self, digest: str, size: int, path: Path) -> None:
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=_PART)
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                actual = await self._copy(digest, _HashingWriter(file, size))
            # Before the file gets its name: under it, every file is one that was verified.
            if actual != digest:
                raise ArtifactRefused(f"the bytes have digest {actual}, approved was {digest}")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    async def _copy(self, digest: str, writer: "_HashingWriter") -> str:
        local = self._local / digest[:2] / digest if self._local else None
        if local is not None and local.is_file():
            await asyncio.to_thread(writer.write_file, local)
        else:
            async for chunk in self._remote.artifact(digest):
                writer.write(chunk)
        # It waits for the disk.
        return await asyncio.to_thread(writer.digest)


class _HashingWriter:
    """Writes chunks to a file, hashes them, and raises if they exceed the approved size."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._remaining, self._size = file, size, size
        self._hasher = hashlib.sha256()

    def write(self, chunk: bytes) -> None:
        # A wrong or hostile source must not fill the disk before the digest is known.
        self._remaining -= len(chunk)
        if self._remaining < 0:
            raise ArtifactRefused(f"the file is longer than the approved {self._size} bytes")
        self._hasher.update(chunk)
        self._file.write(chunk)

    def write_file(self, path: Path) -> None:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                self.write(chunk)

    def digest(self) -> str:
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._hasher.hexdigest()


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
