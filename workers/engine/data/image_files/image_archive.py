"""Reads the files in an image archive from outside, with limits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jobs.spec.data.images import MAX_IMAGE_BYTES
from workers.engine.data.reading.archives.names import MAX_DEPTH, MAX_FILES, is_about, is_hidden
from workers.engine.data.reading.damage import reading
from workers.engine.errors import BadData
from workers.system.archives import Archive, ArchiveFile, BadArchive, DamagedArchive, Limits

MAX_RATIO = 200
"""How many times the bytes of the archive its files may have together."""
SMALL_BYTES = 64 * 2**20
"""Files that have no more bytes together may be compressed by any ratio."""


@dataclass
class ImageArchive:
    """An archive's files.

    Attributes:
        path: the archive's path.
        hidden: how many operating system files the last reading left out.
        about: the files that describe the others; the last reading left them out too.
    """

    path: Path
    hidden: int = 0
    about: list[str] = field(default_factory=list)

    def files(self) -> Iterator[ArchiveFile]:
        """Yield all files in archive order, except those that operating systems add.

        Raises:
            BadData: an entry is refused; the message names it and the reason.
            DamagedFile: the archive is damaged.
        """
        limits = Limits(MAX_FILES, MAX_DEPTH, MAX_IMAGE_BYTES, SMALL_BYTES, MAX_RATIO)
        self.about.clear()
        archive = Archive(self.path, limits, self._is_left_out)
        try:
            yield from archive.files()
        except BadArchive as error:
            raise BadData(str(error)) from error
        except DamagedArchive as error:
            with reading(self.path, error.kind, "pack the images again"):
                raise error.__cause__ or error from None
        finally:
            self.hidden = archive.left_out - len(self.about)

    def _is_left_out(self, path: str) -> bool:
        if is_hidden(path):
            return True
        if is_about(path):
            self.about.append(path)
            return True
        return False
