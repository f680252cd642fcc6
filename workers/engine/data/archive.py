"""Opens zip archives from outside, and limits how much of their directory is read."""

import contextlib
import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from workers.engine.errors import BadData

COMMENT_BYTES = 2**17
"""`ZipFile` reads the end of the file at once, whose comment may have 64 KiB."""


class _LimitedReads(io.FileIO):
    """A file that refuses to read more than `limit` bytes at once; None has no limit."""

    limit: int | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        left = os.fstat(self.fileno()).st_size - self.tell()
        size = left if size is None or size < 0 else min(size, left)
        if self.limit is not None and size > self.limit:
            raise BadData(f"it lists too many files: its directory has more than {self.limit:,} bytes")
        return super().read(size) or b""


@contextlib.contextmanager
def open_archive(path: Path, *, directory_bytes: int) -> Iterator[zipfile.ZipFile]:
    """Open an archive, and close it at the end of the block.

    Args:
        path: the file.
        directory_bytes: the maximum size of the archive's directory. `ZipFile` reads the directory at once,
            and needs about ten times its size in memory.

    Raises:
        BadData: the directory is larger.
        zipfile.BadZipFile: it is not an archive, or its directory is damaged.
    """
    with _LimitedReads(path) as file:
        # `ZipFile` itself finds the directory, so no second parser can disagree with it about the size.
        file.limit = max(directory_bytes, COMMENT_BYTES)
        with zipfile.ZipFile(file) as archive:
            file.limit = None
            yield archive
