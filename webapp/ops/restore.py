"""Restores a backup into a home. The whole backup is verified before the home is changed."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.database_use import lock_file
from jobs.unfinished_restore import MARKER
from webapp.ops.backup_file import POSTGRES_MEMBER, SQLITE_MEMBER, read_backup
from webapp.ops.database import live_parts
from webapp.ops.database.contents import require_installation_in
from webapp.ops.database_copies import (
    POSTGRES_HEADER,
    SQLITE_HEADER,
    check_copy,
    has_tables,
    is_sqlite,
)
from webapp.ops.errors import OpsError
from webapp.ops.home import Home, write_private
from webapp.ops.lock import HomeLock
from webapp.ops.restored_files import Destination, sync_folder

# Present in a home that was never used: logs, and files that every command creates at its start.
NO_STATE = {"run", "log", "static", "broker", "secret.key"}
SCRATCH = ".restore-"


def restore(
    home: Home,
    database: Mapping[str, Any],
    artifacts: Path | None,
    source: Path,
    *,
    force: bool,
    secret_key: Path | None = None,
) -> int:
    """Replace `home`'s state by the backup `source`; return the number of files.

    A copy of the database alone, as an upgrade makes it, replaces only the database.

    Args:
        home: the installation; no `up` may run on it.
        database: Django's `DATABASES["default"]`.
        artifacts: the local artifact folder; None if artifacts are in object storage.
        source: a tar file written by `back_up`, or a copy of the database.
        force: replace a home or a database that is not empty.
        secret_key: the file of the secret key; None: the one in the home.

    Raises:
        OpsError: the home or the database is in use or not empty, or the backup is incomplete or damaged.
    """
    home.create()
    lock = HomeLock(home.lock_file)
    lock.acquire()
    try:
        with live_parts.exclusive(database, home.root):
            return _restore(home, database, artifacts, source, force=force, secret_key=secret_key)
    finally:
        lock.release()


def _restore(
    home: Home,
    database: Mapping[str, Any],
    artifacts: Path | None,
    source: Path,
    *,
    force: bool,
    secret_key: Path | None,
) -> int:
    marker = home.root / MARKER
    _remove_left(home)
    # A restore that was killed has passed these checks, and its home can only be restored again.
    if not marker.exists():
        if not force:
            _check_is_empty(home, database)
        live_parts.require_none(database)
    # On the same disk as the home, so that the last step is a rename.
    with tempfile.TemporaryDirectory(dir=home.root, prefix=SCRATCH) as folder:
        scratch = Path(folder)
        count = _unpack(source, scratch)
        destination = Destination(
            home, database, artifacts, secret_key or home.root / "secret.key", identity=_identity(marker)
        )
        destination.check(scratch)
        # Until it is removed, no part of the installation starts.
        facts = {"backup": str(source.absolute()), "identity": destination.identity}
        write_private(marker, json.dumps(facts) + "\n")
        sync_folder(home.root)
        destination.install(scratch)
    marker.unlink()
    sync_folder(home.root)
    return count


def _remove_left(home: Home) -> None:
    """Remove what killed restores had unpacked. The lock on the home shows that none runs."""
    for left in home.root.glob(f"{SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)
    for left in home.root.glob(f".{MARKER}.*"):
        left.unlink()


def _identity(marker: Path) -> str | None:
    """Return the identity that a killed restore had chosen: the store may have it already."""
    try:
        return str(json.loads(marker.read_text())["identity"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _check_is_empty(home: Home, database: Mapping[str, Any]) -> None:
    entries = {path.name for path in home.root.iterdir()} - NO_STATE
    filled = has_tables(database)
    if is_sqlite(database) and not filled:
        # Commands that look at a database create an empty one.
        name = Path(database["NAME"]).name
        entries -= {name, f"{name}-wal", f"{name}-shm"}
    # This restore has locked it.
    entries.discard(lock_file(database, home.root).name)
    if entries:
        raise OpsError(
            f"{home.root} is not empty ({', '.join(sorted(entries)[:5])}). Restore into an empty "
            "TRAINYARD_HOME, or replace its content with --force."
        )
    if filled:
        kind = "SQLite" if is_sqlite(database) else "PostgreSQL"
        raise OpsError(
            f"The {kind} database {database['NAME']} is not empty. Restore into an empty one, or replace its "
            "content with --force."
        )


def _unpack(source: Path, scratch: Path) -> int:
    """Extract the backup below `scratch`, and verify it. Return the number of its files."""
    if (member := _kind_of_copy(source)) is not None:
        # Created first, because the file may have been made readable by others.
        os.close(os.open(scratch / member, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        shutil.copyfile(source, scratch / member)
        check_copy(scratch / member)
        require_installation_in(scratch / member, source)
        return 1
    backup = read_backup(source, lambda name: scratch / name)
    check_copy(scratch / backup.database)
    require_installation_in(scratch / backup.database, source)
    return len(backup.digests)


def _kind_of_copy(source: Path) -> str | None:
    """Return the kind of a file that is a copy of a database, and no backup."""
    try:
        with source.open("rb") as file:
            begin = file.read(len(SQLITE_HEADER))
    except OSError as error:
        raise OpsError(f"{source} cannot be read: {error.strerror}") from error
    if begin == SQLITE_HEADER:
        return SQLITE_MEMBER
    return POSTGRES_MEMBER if begin.startswith(POSTGRES_HEADER) else None
