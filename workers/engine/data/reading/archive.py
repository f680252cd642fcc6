"""Opens zip archives from outside, and limits how much is read from their directory."""

import contextlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from workers.engine.errors import BadData
from workers.system.archives import BadArchive, open_zip


@contextlib.contextmanager
def open_archive(path: Path, *, directory_bytes: int) -> Iterator[zipfile.ZipFile]:
    """Open an archive, and close it when the block ends; see `open_zip`.

    Raises:
        BadData: its directory has more than `directory_bytes`.
        zipfile.BadZipFile: it is not an archive, or its directory is damaged.
    """
    try:
        with open_zip(path, directory_bytes=directory_bytes) as archive:
            yield archive
    except BadArchive as error:
        raise BadData(str(error)) from error
