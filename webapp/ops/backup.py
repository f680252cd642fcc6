"""Writes backups from a running installation: a consistent database copy, keys and artifacts."""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tarfile
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jobs.runner_files import open_regular
from jobs.store.base import TRASH, is_digest
from webapp.ops.backup_file import (
    ARTIFACTS,
    POSTGRES_MEMBER,
    SECRET_KEY_MEMBER,
    SQLITE_MEMBER,
    Backup,
    BackupWriter,
    read_backup,
)
from webapp.ops.database.contents import require_installation_in, require_key_in
from webapp.ops.database_copies import check_copy, copy_sqlite, dump_postgres, is_sqlite
from webapp.ops.errors import OpsError
from webapp.ops.home import Home

SCRATCH = "backup-"
"""The beginning of the names of folders for copies of the database, in the folder `run`."""
SCRATCH_LOCK = "scratch.lock"
"""The file in the folder `run` that is locked while such a folder is made."""
LOCK_TRIES, LOCK_PAUSE = 5, 0.05
CLOCKS = 60.0
"""The clocks of the store and of this machine may differ by so many seconds."""
COPIES = 5
"""How often the database is copied at most, if keys are replaced meanwhile."""


class WrittenBackup(NamedTuple):
    """A backup that was written and read back.

    Attributes:
        bytes: its size.
        files: how many files are in it.
        notes: sentences about files that it does not have, or that are damaged in the store.
    """

    bytes: int
    files: int
    notes: tuple[str, ...]


def local_artifacts(location: str) -> Path | None:
    """Return the artifact folder, or None for object storage."""
    return None if "://" in location else Path(location)


def back_up(
    home: Home,
    database: Mapping[str, Any],
    artifacts: Path | None,
    target: Path,
    *,
    audit: Mapping[str, Any] | None = None,
    secret_key: Path | None = None,
    expected: Collection[str] = (),
) -> WrittenBackup:
    """Write the database, the keys and all artifacts to the tar file `target`, and read it back.

    Args:
        home: the installation.
        database: Django's `DATABASES["default"]`.
        artifacts: the local artifact folder; None if artifacts are in object storage, which has
            its own backups.
        target: the new file; it is created only once the backup is complete and was read back.
        audit: the audit chain's last row. Read before the call, it is in the database copy.
        secret_key: the file of the secret key; None: the one in the home.
        expected: the digests of the artifacts that the database names.

    Raises:
        OpsError: a key cannot be read, the target is written by another process, or the file differs when
            it is read back.
    """
    # Renamed at the end, so that a failed backup leaves an older file as it is.
    partial = target.with_name(f".{target.name}.partial")
    if (descriptor := _opened_and_locked(partial)) is None:
        raise OpsError(f"Another backup writes {target}. Wait for it, or choose another file.")
    with os.fdopen(descriptor, "w+b") as file:
        try:
            # A killed backup may have left its beginning.
            file.truncate(0)
            with scratch_folder(home) as scratch:
                with tarfile.open(fileobj=file, mode="w") as tar:
                    source = _Source(home, database, artifacts, secret_key or home.root / SECRET_KEY_MEMBER)
                    notes = source.write(BackupWriter(tar), scratch, audit, target)
                file.flush()
                os.fsync(file.fileno())
                if hasattr(os, "posix_fadvise"):  # so that it is read back from the disk
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                backup = verify(partial, scratch)
            partial.replace(target)
            _sync_folder(target.parent)
        finally:
            partial.unlink(missing_ok=True)
    if artifacts is not None:
        notes += _missing(expected, backup)
    return WrittenBackup(target.stat().st_size, len(backup.digests), tuple(notes))


def _opened_and_locked(partial: Path) -> int | None:
    """Create a file and lock it; None if another process writes it."""
    for _ in range(LOCK_TRIES):
        descriptor = os.open(partial, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The other process may have renamed or removed the file between the two calls.
            if os.path.samestat(partial.stat(), os.fstat(descriptor)):
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(descriptor)
        # Again: one that makes regular backups locks a new file for a moment, as if a killed one had left it.
        time.sleep(LOCK_PAUSE)
    return None


def verify(backup: Path, scratch: Path) -> Backup:
    """Read a whole backup: every file, the copy of the database, and the keys.

    Args:
        backup: the file.
        scratch: an empty folder for the copy of the database.

    Raises:
        OpsError: it cannot be restored; the message contains the reason.
    """
    place = scratch / "read-back"

    def extract(name: str) -> Path | None:
        return place / name if name in (SQLITE_MEMBER, POSTGRES_MEMBER, SECRET_KEY_MEMBER) else None

    read = read_backup(backup, extract)
    if SECRET_KEY_MEMBER not in read.digests:
        raise OpsError(f"{backup} has no secret key: it is not a complete backup.")
    check_copy(place / read.database)
    require_installation_in(place / read.database, backup)
    require_key_in(place / read.database, place / SECRET_KEY_MEMBER, backup)
    shutil.rmtree(place)
    return read


@contextlib.contextmanager
def scratch_folder(home: Home) -> Iterator[Path]:
    """Create a folder for large copies, and remove those that killed processes left."""
    with contextlib.ExitStack() as stack:
        with (home.run / SCRATCH_LOCK).open("w") as turn:
            # One at a time: a new folder that is not locked yet looks like one that was left.
            fcntl.flock(turn, fcntl.LOCK_EX)
            _remove_left(home)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=home.run, prefix=SCRATCH)))
            stack.enter_context(_locked(folder))
        yield folder


def _remove_left(home: Home) -> None:
    for left in home.run.glob(f"{SCRATCH}*"):
        with contextlib.suppress(OSError), _locked(left):
            shutil.rmtree(left)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder. The kernel ends the lock with the process. Raises `OSError` if another one has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Source:
    """The installation's files."""

    def __init__(
        self, home: Home, database: Mapping[str, Any], artifacts: Path | None, secret_key: Path
    ) -> None:
        self._home, self._database, self._artifacts = home, database, artifacts
        self._secret_key = secret_key
        self._notes: list[str] = []

    def write(
        self, tar: BackupWriter, scratch: Path, audit: Mapping[str, Any] | None, target: Path
    ) -> list[str]:
        """Write all files and the manifest. Return sentences about files that are left out or damaged."""
        # The database first: artifacts never change and are only added, so the tar then contains every
        # artifact that the copy names.
        started = time.time()
        copy, keys = self._copy_database(scratch)
        with copy.open("rb") as file:
            tar.add(file, copy.name)
        copy.unlink()
        for name, content in keys.items():
            tar.add_content(content, name)
        if self._artifacts is not None and self._artifacts.is_dir():
            for name, place in _members(self._artifacts, moved_after=started - CLOCKS):
                # An earlier backup may be in the folder, and a file in the trash is listed twice.
                if self._artifacts / place != target.absolute() and not tar.has(f"{ARTIFACTS}/{name}"):
                    self._add_artifact(tar, self._artifacts, name, place)
        tar.finish({} if audit is None else {"audit": dict(audit)})
        self._notes += [f"{name} became shorter while it was read; it is left out." for name in tar.cut]
        return self._notes

    def _copy_database(self, scratch: Path) -> tuple[Path, dict[str, bytes]]:
        """Return a copy of the database, and the keys that belong to it."""
        copy = scratch / (SQLITE_MEMBER if is_sqlite(self._database) else POSTGRES_MEMBER)
        keys = self._read_keys()
        for _ in range(COPIES):
            copy.unlink(missing_ok=True)
            if is_sqlite(self._database):
                copy_sqlite(Path(self._database["NAME"]), copy)
            else:
                dump_postgres(self._database, copy)
            # `rotate-keys` may have run: the copy could be from before or after it.
            before, keys = keys, self._read_keys()
            if keys == before:
                return copy, keys
        raise OpsError("The keys are being replaced. Repeat the backup after the end of `rotate-keys`.")

    def _read_keys(self) -> dict[str, bytes]:
        """Read the secret key, wherever it is, and the other keys of the home."""
        # A home may have an unused `secret.key` beside the one that TRAINYARD_SECRET_KEY_FILE names.
        others = [path for path in self._home.root.glob("*.key") if path.is_file()]
        keys = {path.name: path for path in sorted(others) if path != self._secret_key}
        keys[SECRET_KEY_MEMBER] = self._secret_key
        contents: dict[str, bytes] = {}
        for name, path in keys.items():
            try:
                contents[name] = path.read_bytes()
            except OSError as error:
                raise OpsError(
                    f"The key {path} cannot be read ({error.strerror}). Without it the backup could not be "
                    "used; run `backup` as the user who may read it."
                ) from error
        return contents

    def _add_artifact(self, tar: BackupWriter, artifacts: Path, name: str, place: str) -> None:
        member = f"{ARTIFACTS}/{name}"
        try:
            descriptor = _open(artifacts, place)
        except FileNotFoundError:
            return  # retention has deleted it since it was listed
        if descriptor is None:
            self._notes.append(f"{member} is left out: it is no file, or a link that leads out of the store.")
            return
        with os.fdopen(descriptor, "rb") as file:
            tar.add(file, member)
        digest = Path(name).name
        if is_digest(digest) and tar.digests.get(member, digest) != digest:
            self._notes.append(f"{member} is damaged in the store: its content has another digest.")


def _open(artifacts: Path, place: str) -> int | None:
    """Open a regular file of the store. A link is followed to another file of the store only."""
    # Links at the first level are the operator's. Runners write below it, who may replace any part of a path.
    top, _, below = place.partition("/")
    root, relative = (artifacts / top, below) if below else (artifacts, top)
    try:
        return open_regular(root, relative)
    except PermissionError:
        if stat.S_ISREG((artifacts / place).lstat().st_mode):
            raise  # this user may not read it
        return None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise
    with contextlib.suppress(OSError, ValueError):
        linked = (artifacts / place).resolve(strict=True)
        return open_regular(artifacts.resolve(), str(linked.relative_to(artifacts.resolve())))
    return None


def _members(artifacts: Path, *, moved_after: float) -> Iterator[tuple[str, str]]:
    """Yield each complete file: its name in the tar, and its place below the folder.

    A collection may run meanwhile: it moves files to the trash whose rows the copy of the database still has.
    """
    yield from _recently_trashed(artifacts, moved_after)
    # The operator may keep the checkpoints on another disk: a link at the first level is followed.
    for top in sorted(artifacts.iterdir()):
        if top.name.startswith("."):
            continue
        if top.is_file():
            yield top.name, top.name
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            below = Path(folder).relative_to(artifacts)
            # The store writes to names that begin with a dot and renames them once they are complete.
            for name in sorted(name for name in files if not name.startswith(".")):
                yield str(below / name), str(below / name)
    yield from _recently_trashed(artifacts, moved_after)


def _recently_trashed(artifacts: Path, moved_after: float) -> Iterator[tuple[str, str]]:
    for path in sorted((artifacts / TRASH).glob("*")):
        with contextlib.suppress(FileNotFoundError):
            facts = path.stat()
            if is_digest(path.name) and stat.S_ISREG(facts.st_mode) and facts.st_mtime >= moved_after:
                yield f"{path.name[:2]}/{path.name}", f"{TRASH}/{path.name}"


def _missing(expected: Collection[str], backup: Backup) -> list[str]:
    present = {Path(name).name for name in backup.digests if name.startswith(f"{ARTIFACTS}/")}
    missing = sorted(set(expected) - present)
    if not missing:
        return []
    named = ", ".join(digest[:12] for digest in missing[:5])
    return [f"{len(missing)} files that the database names are missing in the store: {named}."]
