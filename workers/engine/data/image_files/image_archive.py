"""Reads the files in an image archive from outside, with limits."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobs.spec.data.images import MAX_IMAGE_BYTES
from workers.engine.data.reading.damage import reading
from workers.engine.errors import BadData
from workers.system.archives import Archive, ArchiveFile, BadArchive, DamagedArchive, Limits

MAX_FILES = 200_000
"""Entries of an archive, folders included."""
MAX_DEPTH = 10
"""Folders around a file."""
MAX_RATIO = 200
"""How many times the bytes of the archive its files may have together."""
SMALL_BYTES = 64 * 2**20
"""Files that have no more bytes together may be compressed by any ratio."""
HIDDEN_FOLDERS = frozenset({"__MACOSX"})
HIDDEN_FILES = frozenset({"thumbs.db", "desktop.ini"})


@dataclass
class ImageArchive:
    """An archive's files.

    Attributes:
        path: the archive's path.
        hidden: how many operating system files the last reading left out.
    """

    path: Path
    hidden: int = 0

    def files(self) -> Iterator[ArchiveFile]:
        """Yield all files in archive order, except those that operating systems add.

        Raises:
            BadData: an entry is refused; the message names it and the reason.
            DamagedFile: the archive is damaged.
        """
        limits = Limits(MAX_FILES, MAX_DEPTH, MAX_IMAGE_BYTES, SMALL_BYTES, MAX_RATIO)
        archive = Archive(self.path, limits, _is_hidden)
        try:
            yield from archive.files()
        except BadArchive as error:
            raise BadData(str(error)) from error
        except DamagedArchive as error:
            with reading(self.path, error.kind, "pack the images again"):
                raise error.__cause__ or error from None
        finally:
            self.hidden = archive.left_out


def _is_hidden(path: str) -> bool:
    parts = path.split("/")
    if any(part.startswith(".") or part in HIDDEN_FOLDERS for part in parts):
        return True
    return parts[-1].lower() in HIDDEN_FILES
