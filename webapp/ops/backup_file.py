"""Writes and reads the tar file of a backup: files with their digests, then a manifest.

A file that has several names, as the weights that checkpoints share, is written once. Its other names are
hard links in the tar.
"""

import hashlib
import io
import json
import os
import posixpath
import shutil
import tarfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from webapp.ops.errors import OpsError

MANIFEST = "manifest.json"
SQLITE_MEMBER, POSTGRES_MEMBER = "database.sqlite3", "database.pgdump"
SECRET_KEY_MEMBER = "secret.key"  # noqa: S105  the name of a file
ARTIFACTS = "artifacts"
FORMAT = 2
READABLE = (1, 2)
"""Format 1 has no list of files that were cut short."""
MAX_MANIFEST_BYTES = 2**28
_BLOCK = 2**20


class BackupWriter:
    """Adds files to a tar, followed by a manifest with their digests."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.digests: dict[str, str] = {}
        self.cut: list[str] = []
        """Files that became shorter while they were copied. They are no part of the backup."""
        self._first_names: dict[tuple[int, int], str] = {}

    def add(self, file: IO[bytes], name: str) -> None:
        """Add a file as it is now. Bytes that are appended to it meanwhile are left out."""
        facts = os.fstat(file.fileno())
        inode = (facts.st_dev, facts.st_ino)
        if facts.st_nlink > 1 and (first := self._first_names.get(inode)) is not None:
            digest = _Counted(file, facts.st_size).digest()
            # Checkpoints share a file to which they append: it may be longer than under its first name. An
            # inode may also belong to another file by now.
            if digest == self.digests[first]:
                self._add_link(name, first)
                return
            file.seek(0)
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = facts.st_size, 0o600, facts.st_mtime
        counted = _Counted(file, facts.st_size)
        self._tar.addfile(info, counted)
        if counted.is_cut:
            self.cut.append(name)
            return
        self.digests[name] = counted.hexdigest
        self._first_names[inode] = name

    def add_content(self, content: bytes, name: str) -> None:
        """Add a file that was read before."""
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = len(content), 0o600, time.time()
        self._tar.addfile(info, io.BytesIO(content))
        self.digests[name] = hashlib.sha256(content).hexdigest()

    def has(self, name: str) -> bool:
        """Return whether a file of this name was added, or was cut."""
        return name in self.digests or name in self.cut

    def _add_link(self, name: str, first: str) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.mode = tarfile.LNKTYPE, first, 0o600
        self._tar.addfile(info)
        self.digests[name] = self.digests[first]

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Add the manifest.

        Args:
            facts: further fields.
        """
        manifest = {
            "format": FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            **facts,
            "cut": self.cut,
            "files": self.digests,
        }
        text = json.dumps(manifest, indent=1).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size, info.mode = len(text), 0o600
        self._tar.addfile(info, io.BytesIO(text))


class _Counted:
    """Reads exactly `size` bytes of a file, with zeros for missing ones, and computes their digest."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size
        self._digest = hashlib.sha256()
        self.is_cut = False

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        block = b"" if self.is_cut else self._file.read(wanted)
        if len(block) < wanted:
            self.is_cut = True
            block += bytes(wanted - len(block))
        self._left -= len(block)
        self._digest.update(block)
        return block

    def digest(self) -> str:
        """Read to the end, and return the digest."""
        while self.read(_BLOCK):
            pass
        return self.hexdigest

    @property
    def hexdigest(self) -> str:
        return self._digest.hexdigest()


class Backup:
    """A backup that was read from its beginning to its end, and is as its manifest lists it.

    Attributes:
        manifest: the manifest.
        digests: the files' digests.
    """

    def __init__(self, manifest: dict[str, Any], digests: dict[str, str]) -> None:
        self.manifest, self.digests = manifest, digests

    @property
    def database(self) -> str:
        """The name of the copy of the database."""
        return SQLITE_MEMBER if SQLITE_MEMBER in self.digests else POSTGRES_MEMBER


def read_backup(source: Path, extract: Callable[[str], Path | None]) -> Backup:
    """Read a whole backup and compare every file with the manifest.

    Args:
        source: the file.
        extract: returns where to write a file of this name; None only reads it.

    Raises:
        OpsError: it is damaged, incomplete, or no backup.
    """
    try:
        with tarfile.open(source) as tar:
            reader = _Reader(tar, extract)
            for member in tar:
                reader.read(member)
                # Otherwise the list of a large backup's members fills the memory.
                tar.members = []  # type: ignore[attr-defined]
    except (tarfile.TarError, OSError, EOFError) as error:
        raise OpsError(f"{source} cannot be read as a backup: {error}") from error
    manifest = _checked_manifest(source, reader.manifest)
    for name in manifest.get("cut", []):
        reader.discard(name)
    files = dict(manifest["files"])
    if reader.digests != files:
        names = {*reader.digests, *files}
        wrong = sorted(name for name in names if reader.digests.get(name) != files.get(name))
        raise OpsError(f"{source} is damaged: {', '.join(wrong[:5])} differ from its manifest.")
    if not {SQLITE_MEMBER, POSTGRES_MEMBER} & files.keys():
        raise OpsError(f"{source} has no copy of a database: it is not a backup of Trainyard.")
    return Backup(manifest, files)


class _Reader:
    """Reads the members one after another."""

    def __init__(self, tar: tarfile.TarFile, extract: Callable[[str], Path | None]) -> None:
        self._tar, self._extract = tar, extract
        self.digests: dict[str, str] = {}
        self.manifest = b""
        self._places: dict[str, Path] = {}

    def read(self, member: tarfile.TarInfo) -> None:
        """Read a member, and write it to its place."""
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise _foreign(member)
        if member.name in self.digests:
            raise OpsError(f"The backup contains {member.name!r} twice.")
        if member.islnk():
            self._link(member, posixpath.normpath(member.linkname))
        elif member.issym():
            self._link(member, posixpath.normpath(str(path.parent / member.linkname)))
        elif member.isreg():
            self._copy(member)
        else:
            raise _foreign(member)

    def _copy(self, member: tarfile.TarInfo) -> None:
        file = self._tar.extractfile(member)
        if file is None:
            raise _foreign(member)
        if member.name == MANIFEST:
            self.manifest = file.read(MAX_MANIFEST_BYTES)
            return
        digest = hashlib.sha256()
        place = self._place(member)
        with Path(os.devnull).open("wb") if place is None else _new_file(place) as target:
            while block := file.read(_BLOCK):
                digest.update(block)
                target.write(block)
        self.digests[member.name] = digest.hexdigest()

    def _link(self, member: tarfile.TarInfo, target: str) -> None:
        """Give a file of the backup a further name. A link to anything else is refused."""
        if target not in self.digests:
            raise OpsError(
                f"The backup contains {member.name!r}, a link to {member.linkname!r}. That is no file before "
                "it in the backup, so it is not part of a Trainyard backup."
            )
        self.digests[member.name] = self.digests[target]
        if (place := self._place(member)) is not None:
            try:
                os.link(self._places[target], place)
            except OSError:  # a file system without hard links, or too many links
                shutil.copyfile(self._places[target], place)

    def _place(self, member: tarfile.TarInfo) -> Path | None:
        place = self._extract(member.name)
        if place is not None:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._places[member.name] = place
        return place

    def discard(self, name: str) -> None:
        """Remove a file that was cut while it was backed up."""
        self.digests.pop(name, None)
        if (place := self._places.pop(name, None)) is not None:
            place.unlink(missing_ok=True)


def _new_file(place: Path) -> IO[bytes]:
    return os.fdopen(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")


def _foreign(member: tarfile.TarInfo) -> OpsError:
    return OpsError(f"The backup contains {member.name!r}, which is not part of a Trainyard backup.")


def _checked_manifest(source: Path, text: bytes) -> dict[str, Any]:
    try:
        manifest = dict(json.loads(text))
        dict(manifest["files"])
        version = manifest["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise OpsError(f"{source} has no manifest: the backup is incomplete.") from error
    if version not in READABLE:
        raise OpsError(
            f"{source} has format {version}; this version reads the formats "
            f"{', '.join(map(str, READABLE))}. Restore it with the version that wrote it, or a later one."
        )
    return manifest


def manifest_text(backup: Path) -> str:
    """Return a backup's manifest.

    Raises:
        tarfile.TarError: it is no tar file, or it ends early.
        KeyError: it has no manifest.
    """
    with tarfile.open(backup) as tar:
        file = tar.extractfile(MANIFEST)
        if file is None:
            raise KeyError(MANIFEST)
        return file.read(MAX_MANIFEST_BYTES).decode(errors="replace")


def manifest_if_backup(file: Path) -> str | None:
    """Return a backup's manifest; None if the file is something else.

    Raises:
        OSError: the file cannot be read.
        OpsError: it is a damaged backup.
    """
    try:
        return manifest_text(file) if tarfile.is_tarfile(file) else None
    except (tarfile.TarError, KeyError) as error:
        raise OpsError(f"it is a tar file without a manifest, or damaged: {error}") from error
