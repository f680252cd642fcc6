"""Copies the database before an upgrade migrates it, once for each upgrade.

A migration that fails, or is killed, is repeated by each start. Copies of the states in between could replace
the only one to which the former version can go back.
"""

import json
import sqlite3
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from webapp.ops.database_copies import ProgramMissing, copy_sqlite, dump_postgres, is_sqlite
from webapp.ops.errors import OpsError
from webapp.ops.home import Home, write_private

MAX_COPIES = 5
WITHOUT_COPY = "TRAINYARD_UPGRADE_WITHOUT_COPY"
"""The variable with which an operator migrates a database that cannot be copied."""
UNFINISHED = "unfinished-upgrade.json"
"""The file beside the copies that names that of an upgrade, and its migrations, until the upgrade ends."""
_PARTIAL = ".partial-"

type Name = tuple[str, str]
"""An app's label and its migration's name."""


def make(
    home: Home, database: Mapping[str, Any], applied: Collection[Name], *, may_go_without: bool = False
) -> str:
    """Copy the database and return a message. Without the program `pg_dump` no copy is made.

    Args:
        home: the installation.
        database: Django's.
        applied: the migrations that the database has.
        may_go_without: a copy that fails is no reason to refuse the upgrade.

    Raises:
        OpsError: the copy failed, such as on a full disk.
    """
    if (kept := _copy_of_this_upgrade(home, applied)) is not None:
        return f"its copy from before the interrupted upgrade is {kept}"
    try:
        return f"its copy is {_copy(home, database, applied)}"
    except ProgramMissing as error:
        return f"no copy was made: {error}"
    except (OpsError, OSError, sqlite3.Error) as error:
        if may_go_without:
            return f"no copy was made, and {WITHOUT_COPY} is set: {error}"
        raise OpsError(
            f"The database is older than this program, and could not be copied to {home.backups}: {error}. "
            "It was not migrated. Start again once that is mended, such as by free disk space; or with "
            f"{WITHOUT_COPY}=1, which migrates it without a copy: make a backup before."
        ) from error


def _copy(home: Home, database: Mapping[str, Any], applied: Collection[Name]) -> Path:
    home.backups.mkdir(mode=0o700, exist_ok=True)
    for left in home.backups.glob(f"{_PARTIAL}*"):
        left.unlink()
    suffix = "sqlite3" if is_sqlite(database) else "dump"
    copy = home.backups / f"before-migration-{datetime.now(UTC):%Y%m%dT%H%M%S}.{suffix}"
    partial = copy.with_name(f"{_PARTIAL}{copy.name}")
    try:
        if is_sqlite(database):
            copy_sqlite(Path(database["NAME"]), partial)
        else:
            dump_postgres(database, partial)
        partial.replace(copy)
    except (OpsError, OSError, sqlite3.Error):
        # The disk may be full: half a copy must not keep its space.
        partial.unlink(missing_ok=True)
        raise
    write_private(home.backups / UNFINISHED, json.dumps({"copy": copy.name, "applied": sorted(applied)}))
    for old in sorted(home.backups.glob("before-migration-*"))[:-MAX_COPIES]:
        old.unlink()
    return copy


def note_end(home: Home) -> None:
    """Note that the upgrade has ended, or that the database was replaced: the next one is copied again."""
    (home.backups / UNFINISHED).unlink(missing_ok=True)


def _copy_of_this_upgrade(home: Home, applied: Collection[Name]) -> Path | None:
    """Return the copy of an upgrade that has applied some of its migrations, but not all."""
    try:
        unfinished = json.loads((home.backups / UNFINISHED).read_text())
        copy = home.backups / str(unfinished["copy"])
        before = {(str(label), str(name)) for label, name in unfinished["applied"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # With the same migrations, the former version may have used the database since.
    return copy if before < set(applied) and copy.exists() else None
