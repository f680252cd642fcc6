"""Opens zip archives from outside, and limits how much is read from their directory."""

import contextlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from workers.engine.errors import BadData
from workers.system.archives import BadArchive, open_zip

MAX_ENTRIES = 10_000
"""Entries of an archive that is itself a file of one format, such as a workbook with sheets and styles."""


@contextlib.contextmanager
def open_archive(
    path: Path, *, directory_bytes: int, entries: int = MAX_ENTRIES
) -> Iterator[zipfile.ZipFile]:
    """Open an archive, and close it when the block ends; see `open_zip`.

    Raises:
        BadData: its directory has more than `directory_bytes` or `entries`, or a member needs another
            decoder than that of deflate: others allocate as much memory as the member demands.
        zipfile.BadZipFile: it is not an archive, or its directory is damaged.
    """
    try:
        with open_zip(path, directory_bytes=directory_bytes, entries=entries) as archive:
            for member in archive.infolist():
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    name = member.filename[:100]
                    raise BadArchive(f"{name!r} is compressed by another method than deflate; pack it again")
            yield archive
    except BadArchive as error:
        raise BadData(str(error)) from error
