"""Restores a backup into a home. The whole backup is verified before the home is changed."""

import hashlib
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any

from jobs.actions.own_installation import IDENTITY_FILE
from webapp.ops.backup import FORMAT, MANIFEST, POSTGRES_MEMBER, SQLITE_MEMBER, run_postgres
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.lock import HomeLock

# Present in a home that was never used: logs, and files that every command creates at its start.
NO_STATE = {"run", "log", "static", "broker", "secret.key"}


def restore(
    home: Home, database: Mapping[str, Any], artifacts: Path | None, source: Path, *, force: bool
) -> int:
    """Replace `home`'s state by the backup `source`; return the number of files.

    Args:
        home: the installation; no `up` may run on it.
        database: Django's `DATABASES["default"]`.
        artifacts: the local artifact folder; None if artifacts are in object storage.
        source: a tar file written by `back_up`.
        force: replace a home that is not empty.

    Raises:
        OpsError: the home is in use or not empty, or the backup is incomplete or damaged.
    """
    home.create()
    lock = HomeLock(home.lock_file)
    lock.acquire()
    try:
        _check_home_is_empty(home, database, force=force)
        # On the same disk as the home, so that the last step is a rename.
        with tempfile.TemporaryDirectory(dir=home.root, prefix=".restore-") as scratch:
            names = _unpack(source, Path(scratch))
            _check_database(Path(scratch))
            _install(home, database, artifacts, Path(scratch))
    finally:
        lock.release()
    return len(names)


def _check_home_is_empty(home: Home, database: Mapping[str, Any], *, force: bool) -> None:
    entries = {path.name for path in home.root.iterdir()} - NO_STATE
    if entries and not force:
        raise OpsError(
            f"{home.root} is not empty ({', '.join(sorted(entries)[:5])}). Restore into an empty "
            "TRAINYARD_HOME, or replace its content with --force."
        )
    if not database["ENGINE"].endswith("sqlite3") and not force:
        raise OpsError("A PostgreSQL database is replaced only with --force.")


def _unpack(source: Path, scratch: Path) -> dict[str, str]:
    """Extract every member below `scratch` and compare it with the manifest."""
    try:
        with tarfile.open(source) as tar:
            digests = {member.name: _copy(tar, member, scratch) for member in tar}
    except (tarfile.TarError, OSError) as error:
        raise OpsError(f"{source} cannot be read as a backup: {error}") from error
    manifest = _manifest(source, scratch)
    digests.pop(MANIFEST, None)
    if digests != manifest:
        wrong = sorted(name for name in {*digests, *manifest} if digests.get(name) != manifest.get(name))
        raise OpsError(f"{source} is damaged: {', '.join(wrong[:5])} differ from its manifest.")
    return manifest


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo, scratch: Path) -> str:
    """Extract one regular file. A name that leaves `scratch` is refused."""
    name = PurePosixPath(member.name)
    member_file = tar.extractfile(member) if member.isreg() else None
    if member_file is None or name.is_absolute() or ".." in name.parts:
        raise OpsError(f"The backup contains {member.name!r}, which is not part of a Trainyard backup.")
    target = scratch / name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (
        member_file,
        os.fdopen(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b") as target_file,
    ):
        shutil.copyfileobj(member_file, target_file)
        target_file.seek(0)
        return hashlib.file_digest(target_file, "sha256").hexdigest()


def _manifest(source: Path, scratch: Path) -> dict[str, str]:
    try:
        manifest = json.loads((scratch / MANIFEST).read_text())
        files, version = dict(manifest["files"]), manifest["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OpsError(f"{source} has no manifest: the backup is incomplete.") from error
    if version != FORMAT:
        raise OpsError(f"{source} has format {version}; this version reads format {FORMAT}.")
    (scratch / MANIFEST).unlink()
    return files


def _check_database(scratch: Path) -> None:
    path = scratch / SQLITE_MEMBER
    if not path.exists():
        return
    with closing(sqlite3.connect(path)) as connection:
        result = connection.execute("PRAGMA integrity_check").fetchone()[0]
    if result != "ok":
        raise OpsError(f"The database in the backup is damaged: {result}")


def _install(home: Home, database: Mapping[str, Any], artifacts: Path | None, scratch: Path) -> None:
    packed = scratch / "artifacts"
    # Checked before the first change, so that a refused backup leaves the home as it was.
    if packed.exists() and artifacts is None:
        raise OpsError("The backup contains artifacts, but TRAINYARD_ARTIFACTS is no local folder.")
    _install_database(database, scratch)
    # The home belonged to the database that was replaced.
    (home.root / IDENTITY_FILE).unlink(missing_ok=True)
    if packed.exists() and artifacts is not None:
        shutil.copytree(packed, artifacts, dirs_exist_ok=True)
    # The keys: the database file or dump is no longer in the folder.
    for path in scratch.glob("*.*"):
        if path.is_file():
            path.replace(home.root / path.name)


def _install_database(database: Mapping[str, Any], scratch: Path) -> None:
    sqlite_copy, dump = scratch / SQLITE_MEMBER, scratch / POSTGRES_MEMBER
    copy = sqlite_copy if database["ENGINE"].endswith("sqlite3") else dump
    if not copy.exists():
        raise OpsError("The backup is of another kind of database than TRAINYARD_DATABASE_URL.")
    if copy is dump:
        command = [
            "pg_restore",
            "--clean",
            "--if-exists",
            "--no-owner",
            # A failure leaves the old database as it was.
            "--single-transaction",
            f"--dbname={database['NAME']}",
            str(dump),
        ]
        run_postgres(command, database)
        dump.unlink()
        return
    target = Path(database["NAME"])
    # They belong to the replaced database; SQLite would apply them to the new one.
    for leftover in (f"{target}-wal", f"{target}-shm"):
        Path(leftover).unlink(missing_ok=True)
    sqlite_copy.replace(target)
