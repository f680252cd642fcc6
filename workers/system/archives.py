"""Reads the files in a zip or tar archive from outside, one after the other, with limits.

The archive's type follows from its content. Names, numbers and sizes are checked before a file is
unpacked. Nothing is written to the disk, so no name can lead outside a folder.
"""

import contextlib
import gzip
import io
import os
import re
import shutil
import stat
import struct
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from workers.system.library_errors import explaining_damage

MAX_NAME = 500
MAX_HEADER_BYTES = 2**20
"""`tarfile` reads an extended header, such as a long name, at once."""
COMMENT_BYTES = 2**17
"""`ZipFile` reads the end of the file at once, whose comment may have 64 KiB."""
DIRECTORY_BYTES_PER_FILE = 160
"""Mean size of an entry in the directory of a zip archive: 46 bytes and the name."""
ZIP, GZIP = (b"PK\x03\x04", b"PK\x05\x06"), b"\x1f\x8b"
TAR_MARK, TAR_PLACE = b"ustar", 257
END_OF_TAR = bytes(512)
ARCHIVES = (*ZIP, GZIP, b"7z\xbc\xaf'\x1c", b"Rar!\x1a\x07", b"BZh", b"\xfd7zXZ\x00", b"(\xb5/\xfd")
"""The first bytes of archives and compressed files."""
_DRIVE = re.compile(r"^[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_DIRECTION = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""They let a name look like another one: its end is then drawn before its middle."""
_CENTRAL_HEADER = b"PK\x01\x02"
"""Begins each entry of a zip archive's directory, which has the lengths of its three texts at byte 28."""
_HEADER_BYTES, _LENGTHS_AT = 46, 28


class BadArchive(ValueError):
    """An archive is refused; the message names the entry and the reason."""


class DamagedArchive(ValueError):
    """A library failed to read an archive; its error is the cause.

    Attributes:
        kind: the archive's type: zip, tar or tar.gz.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(f"it is not a readable {kind} file")
        self.kind = kind


@dataclass(frozen=True)
class Limits:
    """Limits for an archive's content.

    Attributes:
        entries: files and folders, those that are left out included.
        depth: folders around a file.
        file_bytes: bytes in one file.
        small_bytes: files that have no more bytes together may be compressed by any ratio.
        ratio: how many times the archive's bytes its files may have together beyond that; 0: not at all.
        stream_bytes: bytes in an unpacked tar archive with the files that are left out; 0: as many as the
            files that are read may have.
        may_nest: whether a file may be an archive itself. It is not unpacked.
    """

    entries: int
    depth: int
    file_bytes: int
    small_bytes: int
    ratio: int
    stream_bytes: int = 0
    may_nest: bool = False


class ArchiveFile(NamedTuple):
    """A file in an archive: its checked path, with `/` between folders, and its bytes."""

    path: str
    body: bytes


class _LimitedReads(io.FileIO):
    """A file that refuses to read more than `limit` bytes at once, or a directory of more entries.

    None has no limit.
    """

    limit: int | None = None
    entries: int | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        left = os.fstat(self.fileno()).st_size - self.tell()
        size = left if size is None or size < 0 else min(size, left)
        if self.limit is not None and size > self.limit:
            raise BadArchive(f"it lists too many files: its directory has more than {self.limit:,} bytes")
        body = super().read(size) or b""
        # Before `ZipFile` makes an object of each entry, which has ten times as many bytes.
        if self.entries is not None and _count_entries(body) > self.entries:
            raise BadArchive(f"the archive has more than {self.entries:,} files and folders")
        return body


def _count_entries(directory: bytes) -> int:
    """Return how many entries a zip archive's directory has; 0 for other bytes."""
    count = place = 0
    while directory.startswith(_CENTRAL_HEADER, place) and place + _HEADER_BYTES <= len(directory):
        place += _HEADER_BYTES + sum(struct.unpack_from("<3H", directory, place + _LENGTHS_AT))
        count += 1
    return count


@contextlib.contextmanager
def open_zip(path: Path, *, directory_bytes: int, entries: int) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive, and close it at the block's end.

    Args:
        path: the file.
        directory_bytes: the archive directory's maximum size. `ZipFile` reads the directory at once,
            and needs about ten times its size in memory.
        entries: the most files and folders that it may list.

    Raises:
        BadArchive: the directory is larger, or lists more.
        zipfile.BadZipFile: it is not an archive, or its directory is damaged.
    """
    with _LimitedReads(path) as file:
        # `ZipFile` itself finds the directory, so no second parser can disagree with it about the size.
        file.limit, file.entries = max(directory_bytes, COMMENT_BYTES), entries
        with zipfile.ZipFile(file) as archive:
            file.limit = file.entries = None
            yield archive


def is_archive(head: bytes) -> bool:
    """Return whether a file with these first bytes is an archive or compressed."""
    return head.startswith(ARCHIVES) or head[TAR_PLACE : TAR_PLACE + len(TAR_MARK)] == TAR_MARK


def safe_path(name: str, where: str = " in the archive") -> str:
    """Return a file's path inside an archive or a folder, with `/` between folders.

    Args:
        name: as the archive or the sender gives it.
        where: follows the name in messages.

    Raises:
        BadArchive: it may lead outside a folder, or is too long.
    """
    # Some programs for Windows write its separators.
    path = name.replace("\\", "/")
    excerpt = path[:100]
    if len(name) > MAX_NAME:
        raise BadArchive(f"a name{where} has {len(name):,} characters; at most {MAX_NAME} are read")
    if _CONTROL.search(name):
        raise BadArchive(f"{excerpt!r}{where} has control characters in its name")
    if _DIRECTION.search(name):
        raise BadArchive(f"{excerpt!r}{where} has characters in its name that change the direction of text")
    if path.startswith("/") or _DRIVE.match(path):
        raise BadArchive(f"{excerpt!r}{where} has an absolute name")
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise BadArchive(f"{excerpt!r}{where} leads out of its folder")
    return "/".join(parts)


@dataclass
class Archive:
    """The files in an archive.

    Attributes:
        path: the archive.
        limits: for its content.
        is_left_out: whether a file with this path is not read.
        left_out: how many files the last reading left out.
    """

    path: Path
    limits: Limits
    is_left_out: Callable[[str], bool]
    left_out: int = 0
    _seen: set[str] = field(default_factory=set, repr=False)

    def files(self) -> Iterator[ArchiveFile]:
        """Yield the files in the archive's order, except those that are left out.

        Raises:
            BadArchive: an entry is refused; the message names it and the reason.
            DamagedArchive: the archive is damaged.
        """
        self.left_out = 0
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
            raise BadArchive(
                f"{self.path.name} is neither a zip archive nor a tar archive, also not a tar.gz"
            )

    def unpack(self, folder: Path) -> Iterator[tuple[str, Path]]:
        """Yield the path in the archive of each file, and the file itself in a folder, one after the other.

        Args:
            folder: an empty folder, in which the files are numbered.

        Raises:
            BadArchive, DamagedArchive: as `files`.
        """
        with self.path.open("rb") as file:
            is_zip = file.read(4) in ZIP
        files = self._streamed() if is_zip else ((name, io.BytesIO(body)) for name, body in self.files())
        for number, (name, content) in enumerate(files):
            path = folder / str(number) / name.rpartition("/")[2]
            path.parent.mkdir()
            with path.open("wb") as target, _damage("zip"):
                shutil.copyfileobj(content, target)
            yield name, path

    def _streamed(self) -> Iterator[tuple[str, IO[bytes]]]:
        """Yield the path and the content of each file in a zip archive, which need not fit into memory."""
        self._seen.clear()
        with self._opened_zip() as (archive, entries):
            for entry, name in entries:
                # `zipfile` reads no more bytes than the directory states.
                with _damage("zip"):
                    content = archive.open(entry)
                with content:
                    yield name, content

    @contextlib.contextmanager
    def _opened_zip(self) -> Iterator[tuple[zipfile.ZipFile, list[tuple[zipfile.ZipInfo, str]]]]:
        """Open a zip archive, and check all of its entries before the first is unpacked."""
        with contextlib.ExitStack() as stack:
            with _damage("zip"):
                size = self.limits.entries * DIRECTORY_BYTES_PER_FILE
                opened = open_zip(self.path, directory_bytes=size, entries=self.limits.entries)
                archive = stack.enter_context(opened)
            entries = archive.infolist()
            named_entries = [
                (entry, name) for entry in entries if (name := self._check_entry(_zip_entry(entry)))
            ]
            self._check_total(sum(entry.file_size for entry, _ in named_entries))
            yield archive, named_entries

    def _in_zip(self) -> Iterator[ArchiveFile]:
        with self._opened_zip() as (archive, entries):
            for entry, name in entries:
                with _damage("zip"):
                    body = _zip_body(archive, entry)
                yield self._check_body(name, body)

    def _in_tar(self, *, compressed: bool) -> Iterator[ArchiveFile]:
        kind = "tar.gz" if compressed else "tar"
        total = 0
        with contextlib.ExitStack() as stack:
            with _damage(kind):
                file: Any = stack.enter_context(self.path.open("rb"))
                if compressed:
                    file = stack.enter_context(gzip.GzipFile(fileobj=file))
                source = _BoundedReads(file, self._most_unpacked(), self.limits.entries)
                archive = stack.enter_context(tarfile.TarFile(fileobj=source, errorlevel=2))  # type: ignore[arg-type]
            for number in range(1, self.limits.entries + 2):
                with _damage(kind):
                    entry = archive.next()
                    # `tarfile` keeps all entries, for searching.
                    archive.members.clear()  # type: ignore[attr-defined]
                    # It also stops at a damaged header, without an error.
                    if entry is None and source.last != END_OF_TAR:
                        raise tarfile.ReadError(f"it is damaged or incomplete after {number - 1} entries")
                if entry is None:
                    return
                self._check_count(number)
                name = self._check_entry(_tar_entry(entry))
                if not name:
                    continue
                total += entry.size
                self._check_total(total)
                with _damage(kind):
                    body = _tar_body(archive, entry, self.limits.file_bytes)
                yield self._check_body(name, body)

    def _check_entry(self, entry: "_Entry") -> str:
        """Return a file's path; an empty text for folders and files that are left out.

        Raises:
            BadArchive: the entry is refused.
        """
        name = safe_path(entry.name)
        if not name and not entry.is_folder:
            raise BadArchive("a file in the archive has no name")
        if self.is_left_out(name):
            self.left_out += not entry.is_folder
            return ""
        if entry.refusal:
            raise BadArchive(f"{name!r} in the archive {entry.refusal}")
        if name.count("/") > self.limits.depth:
            excerpt = name[:100]
            raise BadArchive(f"{excerpt!r} in the archive is inside of more than {self.limits.depth} folders")
        if entry.is_folder:
            return ""
        if entry.size > (most := self.limits.file_bytes):
            raise BadArchive(f"{name!r} in the archive has {entry.size:,} bytes; at most {most:,} are read")
        if name in self._seen:
            raise BadArchive(f"{name!r} is twice in the archive")
        self._seen.add(name)
        return name

    def _check_count(self, count: int) -> None:
        if count > self.limits.entries:
            raise BadArchive(f"the archive has more than {self.limits.entries:,} files and folders")

    def _most_bytes(self) -> int:
        return max(self.limits.small_bytes, self.limits.ratio * self.path.stat().st_size)

    def _most_unpacked(self) -> int:
        return max(self.limits.stream_bytes, self._most_bytes())

    def _check_total(self, size: int) -> None:
        if size <= (most := self._most_bytes()):
            return
        why = f", which is {self.limits.ratio} times its own size" if self.limits.ratio else ""
        raise BadArchive(f"the files of the archive have {size:,} bytes, more than {most:,}{why}")

    def _check_body(self, name: str, body: bytes) -> ArchiveFile:
        """Return a file from the archive.

        Raises:
            BadArchive: it is an archive itself.
        """
        if not self.limits.may_nest and is_archive(body):
            raise BadArchive(f"{name!r} is an archive inside of the archive; unpack it first")
        return ArchiveFile(name, body)


class _Entry(NamedTuple):
    """An entry in either kind of archive, and why it is refused, if it is."""

    name: str
    size: int
    is_folder: bool
    refusal: str = ""


class _BoundedReads:
    """The bytes in a tar archive: limits single reads and all bytes together."""

    def __init__(self, file: IO[bytes], most: int, entries: int) -> None:
        self._file, self._most = file, most + entries * 1024
        self.limit: int = MAX_HEADER_BYTES
        self.last = b""

    def read(self, size: int) -> bytes:
        if size > self.limit:
            raise BadArchive(f"a header in the archive has {size:,} bytes; at most {self.limit:,} are read")
        self.last = self._file.read(size)
        return self.last

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        if place > self._most:
            raise BadArchive(f"the archive unpacks to more than {self._most:,} bytes")
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()


def _damage(kind: str) -> contextlib.AbstractContextManager[None]:
    """Report errors from the libraries that read archives as damage."""
    return explaining_damage(lambda _: DamagedArchive(kind), BadArchive)


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


def _tar_body(archive: tarfile.TarFile, entry: tarfile.TarInfo, most: int) -> bytes:
    source: Any = archive.fileobj
    source.limit = most
    try:
        file = archive.extractfile(entry)
        body = b"" if file is None else file.read(entry.size)
    finally:
        source.limit = MAX_HEADER_BYTES
    if len(body) != entry.size:
        raise tarfile.ReadError(f"{entry.name!r} is incomplete")
    return body
