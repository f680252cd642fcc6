"""Reads the files in an image archive from outside, with limits."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

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
ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice|changelog|citation|authors)\b", re.IGNORECASE)
ABOUT_SUFFIXES = frozenset({".md", ".rst", ".pdf", ".html", ".htm", ".url", ".names", ".docx", ".doc"})
"""Begins of names, and suffixes, of files that describe the others."""
HIDDEN_FILES = frozenset({"thumbs.db", "desktop.ini"})


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


def is_about(path: str) -> bool:
    """Return whether a file in an archive describes the others, by its name."""
    name = PurePosixPath(path)
    suffix = name.suffix.lower()
    return suffix in ABOUT_SUFFIXES or (suffix in ("", ".txt") and ABOUT.match(name.name) is not None)


def is_hidden(path: str) -> bool:
    """Return whether a file in an archive was added by an operating system."""
    parts = path.split("/")
    if any(part.startswith(".") or part in HIDDEN_FOLDERS for part in parts):
        return True
    return parts[-1].lower() in HIDDEN_FILES
