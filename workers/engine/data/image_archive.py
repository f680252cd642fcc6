"""Reads the files of a zip or tar archive from outside, one after the other, with limits.

The type of the archive follows from its content. Names, numbers and sizes are checked before a file is
unpacked. Nothing is written to the disk, so no name can lead outside of a folder.
"""

import contextlib
import gzip
import io
import re
import stat
import tarfile
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from jobs.contracts.images import MAX_IMAGE_BYTES
from workers.engine.data.archive import open_archive
from workers.engine.data.damage import reading
from workers.engine.errors import BadData

MAX_FILES = 200_000
"""Entries of an archive, folders included."""
MAX_DEPTH = 10
"""Folders around a file."""
MAX_NAME = 500
MAX_RATIO = 200
"""How many times the bytes of the archive its files may have together."""
SMALL_BYTES = 64 * 2**20
"""Files that have no more bytes together may be compressed by any ratio."""
MAX_HEADER_BYTES = 2**20
"""`tarfile` reads an extended header, such as a long name, at once."""
DIRECTORY_BYTES_PER_FILE = 160
"""Mean size of an entry in the directory of a zip archive: 46 bytes and the name."""
HIDDEN_FOLDERS = frozenset({"__MACOSX"})
HIDDEN_FILES = frozenset({"thumbs.db", "desktop.ini"})
ZIP, GZIP = (b"PK\x03\x04", b"PK\x05\x06"), b"\x1f\x8b"
TAR_MARK, TAR_PLACE = b"ustar", 257
END_OF_TAR = bytes(512)
ARCHIVES = (*ZIP, GZIP, b"7z\xbc\xaf'\x1c", b"Rar!\x1a\x07", b"BZh", b"\xfd7zXZ\x00", b"(\xb5/\xfd")
"""The first bytes of archives and compressed files."""
_DRIVE = re.compile(r"^[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class ArchiveFile(NamedTuple):
    """A file of an archive: its checked path, with `/` between folders, and its bytes."""

    path: str
    body: bytes


@dataclass
class ImageArchive:
    """The files of an archive.

    Attributes:
        path: of the archive.
        hidden: number of files of operating systems that the last reading left out.
    """

    path: Path
    hidden: int = 0
    _seen: set[str] = field(default_factory=set, repr=False)

    def files(self) -> Iterator[ArchiveFile]:
        """Yield all files in the order of the archive, except those of operating systems.

        Raises:
            BadData: an entry is refused; the message names it and the reason.
            DamagedFile: the archive is damaged.
        """
        self.hidden = 0
        self._seen.clear()
        with self.path.open("rb") as file:
            head = file.read(TAR_PLACE + len(TAR_MARK))
        if head.startswith(ZIP):
            yield from self._in_zip()
        elif head.startswith(GZIP):
            yield from self._in_tar(compressed=True)
        elif head[TAR_PLACE:] == TAR_MARK:
            yield from self._in_tar(compressed=False)
        else:
            raise BadData(f"{self.path.name} is neither a zip archive nor a tar archive, also not a tar.gz")

    def _in_zip(self) -> Iterator[ArchiveFile]:
        with contextlib.ExitStack() as stack:
            with _damage(self.path, "zip"):
                size = MAX_FILES * DIRECTORY_BYTES_PER_FILE
                archive = stack.enter_context(open_archive(self.path, directory_bytes=size))
            entries = archive.infolist()
            _check_count(len(entries))
            # All of them before the first is unpacked.
            wanted = [(entry, name) for entry in entries if (name := self._checked(_zip_entry(entry)))]
            self._check_total(sum(entry.file_size for entry, _ in wanted))
            for entry, name in wanted:
                with _damage(self.path, "zip"):
                    body = _zip_body(archive, entry)
                yield _checked_body(name, body)

    def _in_tar(self, *, compressed: bool) -> Iterator[ArchiveFile]:
        kind = "tar.gz" if compressed else "tar"
        total = 0
        with contextlib.ExitStack() as stack:
            with _damage(self.path, kind):
                file: Any = stack.enter_context(self.path.open("rb"))
                if compressed:
                    file = stack.enter_context(gzip.GzipFile(fileobj=file))
                source = _BoundedReads(file, self._most_bytes())
                archive = stack.enter_context(tarfile.TarFile(fileobj=source, errorlevel=2))  # type: ignore[arg-type]
            for number in range(1, MAX_FILES + 2):
                with _damage(self.path, kind):
                    entry = archive.next()
                    # `tarfile` keeps all entries, for searching.
                    archive.members.clear()  # type: ignore[attr-defined]
                    # It also stops at a damaged header, without an error.
                    if entry is None and source.last != END_OF_TAR:
                        raise tarfile.ReadError(f"it is damaged or incomplete after {number - 1} entries")
                if entry is None:
                    return
                _check_count(number)
                name = self._checked(_tar_entry(entry))
                total += entry.size
                self._check_total(total)
                if not name:
                    continue
                with _damage(self.path, kind):
                    body = _tar_body(archive, entry)
                yield _checked_body(name, body)

    def _checked(self, entry: "_Entry") -> str:
        """Return the path of a file; an empty text for folders and hidden files.

        Raises:
            BadData: the entry is refused.
        """
        name = _checked_path(entry.name)
        if entry.refusal:
            raise BadData(f"{name!r} in the archive {entry.refusal}")
        if entry.is_folder:
            return ""
        if _is_hidden(name):
            self.hidden += 1
            return ""
        if entry.size > MAX_IMAGE_BYTES:
            raise BadData(
                f"{name!r} in the archive has {entry.size:,} bytes; at most {MAX_IMAGE_BYTES:,} are read"
            )
        if name in self._seen:
            raise BadData(f"{name!r} is twice in the archive")
        self._seen.add(name)
        return name

    def _most_bytes(self) -> int:
        return max(SMALL_BYTES, MAX_RATIO * self.path.stat().st_size)

    def _check_total(self, size: int) -> None:
        if size > (most := self._most_bytes()):
            raise BadData(
                f"the files of the archive have {size:,} bytes, more than {most:,}, which is {MAX_RATIO} "
                "times its own size"
            )


class _Entry(NamedTuple):
    """An entry of either kind of archive, and why it is refused, if it is."""

    name: str
    size: int
    is_folder: bool
    refusal: str = ""


class _BoundedReads:
    """The bytes of a tar archive: limits the size of single reads and of all bytes together."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._most = file, most
        self.limit: int = MAX_HEADER_BYTES
        self.last = b""

    def read(self, size: int) -> bytes:
        if size > self.limit:
            raise BadData(f"a header in the archive has {size:,} bytes; at most {self.limit:,} are read")
        self.last = self._file.read(size)
        return self.last

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        if place > self._most + MAX_FILES * 1024:
            raise BadData(f"the archive unpacks to more than {self._most:,} bytes")
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()


@contextlib.contextmanager
def _damage(path: Path, kind: str) -> Iterator[None]:
    """Report errors of the libraries that read archives as damage."""
    with reading(path, kind, "pack the images again"):
        yield


def _check_count(count: int) -> None:
    if count > MAX_FILES:
        raise BadData(f"the archive has more than {MAX_FILES:,} files and folders")


def _checked_path(name: str) -> str:
    """Return the path of an entry.

    Raises:
        BadData: it may lead outside of a folder, or is too long or too deep.
    """
    # Some programs for Windows write its separators.
    path = name.replace("\\", "/")
    shown = path[:100]
    if len(name) > MAX_NAME:
        raise BadData(f"a name in the archive has {len(name):,} characters; at most {MAX_NAME} are read")
    if _CONTROL.search(name):
        raise BadData(f"{shown!r} in the archive has control characters in its name")
    if path.startswith("/") or _DRIVE.match(path):
        raise BadData(f"{shown!r} in the archive has an absolute name")
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise BadData(f"{shown!r} in the archive leads out of its folder")
    if len(parts) > MAX_DEPTH + 1:
        raise BadData(f"{shown!r} in the archive is inside of more than {MAX_DEPTH} folders")
    return "/".join(parts)


def _is_hidden(path: str) -> bool:
    parts = path.split("/")
    if any(part.startswith(".") or part in HIDDEN_FOLDERS for part in parts):
        return True
    return parts[-1].lower() in HIDDEN_FILES


def _text(name: str) -> str:
    """Return a name as valid Unicode. Macintosh computers divide letters from their accents."""
    return unicodedata.normalize("NFC", name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _zip_entry(entry: zipfile.ZipInfo) -> _Entry:
    # Unix writes the kind of a file here; other systems write 0.
    kind = stat.S_IFMT(entry.external_attr >> 16)
    refusal = ""
    if kind == stat.S_IFLNK:
        refusal = "is a link"
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        refusal = "is a device"
    elif entry.flag_bits & 0x1:
        refusal = "is encrypted"
    elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        refusal = "is compressed by another method than deflate"
    return _Entry(_text(entry.orig_filename), entry.file_size, entry.is_dir(), refusal)


def _tar_entry(entry: tarfile.TarInfo) -> _Entry:
    refusal = ""
    if entry.issym() or entry.islnk():
        refusal = "is a link"
    elif entry.isdev():
        refusal = "is a device"
    elif entry.issparse():
        refusal = "is a sparse file"
    elif not (entry.isreg() or entry.isdir()):
        refusal = "is no file and no folder"
    return _Entry(_text(entry.name), entry.size, entry.isdir(), refusal)


def _zip_body(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as file:
        # With a number: without one, all of the compressed bytes are unpacked before they are counted.
        body = file.read(entry.file_size + 1)
    if len(body) != entry.file_size:
        raise zipfile.BadZipFile(f"{entry.orig_filename!r} is incomplete")
    return body


def _tar_body(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    source: Any = archive.fileobj
    source.limit = MAX_IMAGE_BYTES
    try:
        file = archive.extractfile(entry)
        body = b"" if file is None else file.read(entry.size)
    finally:
        source.limit = MAX_HEADER_BYTES
    if len(body) != entry.size:
        raise tarfile.ReadError(f"{entry.name!r} is incomplete")
    return body


def _checked_body(name: str, body: bytes) -> ArchiveFile:
    """Return a file of the archive.

    Raises:
        BadData: it is an archive itself.
    """
    if body.startswith(ARCHIVES) or body[TAR_PLACE : TAR_PLACE + len(TAR_MARK)] == TAR_MARK:
        raise BadData(f"{name!r} is an archive inside of the archive; unpack it first")
    return ArchiveFile(name, body)
