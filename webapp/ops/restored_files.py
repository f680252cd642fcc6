"""Puts an unpacked and verified backup in its place: artifacts, keys, and the database last."""

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from jobs import program
from jobs.actions.own_installation import IDENTITY_FILE
from jobs.queries.storage.ownership import RESTORED
from jobs.store import CACHE_FOLDER
from jobs.store.base import is_digest
from jobs.store.local import LocalStore
from webapp.ops.backup_file import ARTIFACTS, POSTGRES_MEMBER, SECRET_KEY_MEMBER, SQLITE_MEMBER
from webapp.ops.database import upgrade_copies
from webapp.ops.database_copies import (
    is_sqlite,
    read_column,
    replace_postgres,
    replace_sqlite,
)
from webapp.ops.errors import OpsError
from webapp.ops.home import Home

IDENTITIES = (
    f"SELECT holder FROM jobs_lease WHERE name = '{RESTORED}'",  # noqa: S608  a constant
    "SELECT identity FROM jobs_installationsettings WHERE identity <> ''",
)
"""Where a database has its identity, in versions that have one."""
FORGET_WORKERS = "UPDATE jobs_worker SET state = 'lost', process = '' WHERE state IN ('up', 'draining')"
"""A worker of that time has continued without this database: its further events would have gaps."""
CHECKPOINT_FOLDER = "checkpoints"
CHECKPOINTS = "SELECT folder FROM jobs_checkpoint WHERE removed IS NULL"


class Destination:
    """Where a backup is restored.

    Attributes:
        identity: that of the restored installation: of the one that it replaces, or a new one. A copy must
            not have that of its original, which may still run and own the store.
    """

    def __init__(
        self,
        home: Home,
        database: Mapping[str, Any],
        artifacts: Path | None,
        secret_key: Path,
        *,
        identity: str | None = None,
    ) -> None:
        self._home, self._database, self._secret_key = home, database, secret_key
        self._artifacts = artifacts
        self.identity = identity or self._replaced_identity() or uuid.uuid4().hex

    def _replaced_identity(self) -> str | None:
        for query in IDENTITIES:
            if found := read_column(self._database, query):
                return found[0]
        return None

    def check(self, scratch: Path) -> None:
        """Check everything that could refuse the backup, before the first change.

        Raises:
            OpsError: the backup does not fit.
        """
        wanted = SQLITE_MEMBER if is_sqlite(self._database) else POSTGRES_MEMBER
        if not (scratch / wanted).exists():
            raise OpsError(self._other_kind())
        self._check_key(scratch)
        if not (scratch / ARTIFACTS).exists():
            return
        if self._artifacts is None:
            raise OpsError(
                "The backup contains artifacts, but TRAINYARD_ARTIFACTS is no local folder. Unset it, or "
                "name an empty folder, and restore again."
            )
        if not self._owns_store:
            self._require_files(scratch / ARTIFACTS, self._artifacts)

    def _other_kind(self) -> str:
        move = program.command_line("move-database")
        if is_sqlite(self._database):
            return (
                "The backup is of a PostgreSQL database, but without such an address in "
                f"TRAINYARD_DATABASE_URL the database is the SQLite file {self._database['NAME']}. Set "
                "TRAINYARD_DATABASE_URL=postgresql://USER@HOST/NAME of an empty database, and restore again. "
                f"Afterwards, `{move} sqlite:////FOLDER/trainyard.sqlite3` moves it to SQLite."
            )
        return (
            "The backup is of a SQLite database, but TRAINYARD_DATABASE_URL is the PostgreSQL database "
            f"{self._database['NAME']}. Unset TRAINYARD_DATABASE_URL, and restore again. Afterwards, "
            f"`{move} postgresql://USER@HOST/NAME` moves it to PostgreSQL."
        )

    def _check_key(self, scratch: Path) -> None:
        folder = self._secret_key.parent
        if (
            (scratch / SECRET_KEY_MEMBER).exists()
            and not _same_content(scratch / SECRET_KEY_MEMBER, self._secret_key)
            and not os.access(folder, os.W_OK)
        ):
            raise OpsError(
                f"The backup's secret key differs from {self._secret_key}, which cannot be replaced: "
                f"{folder} is not writable. Unset TRAINYARD_SECRET_KEY_FILE and restore again; then put the "
                f"restored {self._home.root / SECRET_KEY_MEMBER} there."
            )

    @cached_property
    def _owns_store(self) -> bool:
        """Whether the artifact folder belongs to this installation, or to none."""
        folder = self._artifacts
        if folder is None:
            return False
        if not folder.exists() or folder.resolve().is_relative_to(self._home.root.resolve()):
            return True
        owner = LocalStore(folder).owner()
        return owner == self.identity if owner else not any(_files(folder))

    def _require_files(self, packed: Path, folder: Path) -> None:
        """Require that another installation's store has all artifacts already: nothing is written to it."""
        names = [path.relative_to(packed) for path in _files(packed) if is_digest(path.name)]
        missing = [name for name in names if not _same_size(packed / name, folder / name)]
        if missing:
            raise OpsError(
                f"TRAINYARD_ARTIFACTS={folder} has files of another installation, and lacks {len(missing)} "
                "files of the backup. Restore into an empty folder."
            )

    def install(self, scratch: Path) -> None:
        """Put everything in its place. It may be repeated after a kill."""
        if self._artifacts is not None and self._owns_store:
            if (scratch / ARTIFACTS).exists():
                _remove_job_folders(
                    scratch / ARTIFACTS / CHECKPOINT_FOLDER, self._artifacts / CHECKPOINT_FOLDER
                )
                _move_files(scratch / ARTIFACTS, self._artifacts)
            LocalStore(self._artifacts).set_owner(self.identity)
        self._install_keys(scratch)
        statements = [
            *(("jobs_lease.holder", text) for text in _marking(self.identity)),
            ("jobs_worker.process", FORGET_WORKERS),
        ]
        if is_sqlite(self._database):
            replace_sqlite(Path(self._database["NAME"]), scratch / SQLITE_MEMBER, statements)
        else:
            replace_postgres(self._database, scratch / POSTGRES_MEMBER, statements)
        # The home belonged to the replaced database.
        (self._home.root / IDENTITY_FILE).unlink(missing_ok=True)
        upgrade_copies.note_end(self._home)
        if self._artifacts is not None and self._owns_store:
            self._remove_unrecorded(LocalStore(self._artifacts).checkpoint_root)
        # With artifacts in object storage, this machine's checkpoints are in the home.
        self._remove_unrecorded(self._home.root / CACHE_FOLDER / CHECKPOINT_FOLDER)
        # The files before the marker's end.
        os.sync()

    def _install_keys(self, scratch: Path) -> None:
        for path in sorted(scratch.glob("*.key")):
            is_secret = path.name == SECRET_KEY_MEMBER
            target = self._secret_key if is_secret else self._home.root / path.name
            if _same_content(path, target):
                continue
            # A key outside the home is the operator's.
            if target.exists() and target.parent != self._home.root:
                now = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
                shutil.copy2(target, target.with_name(f"{target.name}.before-{now}"))
            _move(path, target)
            # The public key is made from the other one.
            target.with_suffix(".pub").unlink(missing_ok=True)

    def _remove_unrecorded(self, checkpoints: Path) -> None:
        """Remove checkpoints that the restored database does not know.

        They have the names that attempts will use again, which would take them for their own.
        """
        rows = read_column(self._database, CHECKPOINTS)
        if rows is None:
            return
        recorded = set(rows)
        for folder, folders, _ in os.walk(checkpoints):
            for name in [name for name in folders if name[:10].isdecimal() and name[10:11] == "-"]:
                folders.remove(name)
                path = Path(folder, name)
                if str(path.relative_to(checkpoints)) not in recorded:
                    shutil.rmtree(path, ignore_errors=True)


def _marking(identity: str) -> list[str]:
    return [
        f"DELETE FROM jobs_lease WHERE name = '{RESTORED}'",  # noqa: S608  constants
        "INSERT INTO jobs_lease (name, holder, until) "  # noqa: S608  an identity is hexadecimal
        f"VALUES ('{RESTORED}', '{identity}', '2999-01-01 00:00:00')",
    ]


def sync_folder(folder: Path) -> None:
    """Write a folder's names to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _remove_job_folders(packed: Path, present: Path) -> None:
    """Remove the present folders of restored jobs.

    A folder that runners with users of their own have entered passes its access to new files. Files that are
    moved into it get none, so runners could not read them; a new folder is opened to them with its files.
    """
    for folder in packed.glob("*"):
        shutil.rmtree(present / folder.name, ignore_errors=True)


def _move_files(packed: Path, target: Path) -> None:
    for path in _files(packed):
        place = target / path.relative_to(packed)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _move(path, place)


def _move(path: Path, place: Path) -> None:
    """Move a file, by a rename also from another file system: no process sees a part of it."""
    try:
        path.replace(place)
    except OSError:
        beside = place.with_name(f".{place.name}.restored")
        with contextlib.ExitStack() as undo:
            undo.callback(beside.unlink, missing_ok=True)
            shutil.copyfile(path, beside)
            beside.chmod(0o600)
            beside.replace(place)


def _same_content(path: Path, other: Path) -> bool:
    try:
        return path.read_bytes() == other.read_bytes()
    except FileNotFoundError:
        return False


def _same_size(path: Path, other: Path) -> bool:
    try:
        return path.stat().st_size == other.stat().st_size
    except FileNotFoundError:
        return False
