"""Copies the database before an upgrade migrates it, once for each upgrade.

A migration that fails, or is killed, is repeated by each start. Copies of the states in between could replace
the only one to which the former version can go back.
"""

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from webapp.ops.database_copies import copy_sqlite, dump_postgres, is_sqlite
from webapp.ops.errors import OpsError
from webapp.ops.home import Home, write_private

MAX_COPIES = 5
UNFINISHED = "unfinished-upgrade.json"
"""The file beside the copies that names that of an upgrade, and its migrations, until the upgrade ends."""
_PARTIAL = ".partial-"

type Name = tuple[str, str]
"""An app's label and its migration's name."""


def make(home: Home, database: Mapping[str, Any], applied: Collection[Name]) -> str:
    """Copy the database and return a message. Without PostgreSQL's tools no copy is made.

    Args:
        home: the installation.
        database: Django's.
        applied: the migrations that the database has.
    """
    home.backups.mkdir(mode=0o700, exist_ok=True)
    if (kept := _copy_of_this_upgrade(home, applied)) is not None:
        return f"its copy from before the interrupted upgrade is {kept}"
    for left in home.backups.glob(f"{_PARTIAL}*"):
        left.unlink()
    suffix = "sqlite3" if is_sqlite(database) else "dump"
    copy = home.backups / f"before-migration-{datetime.now(UTC):%Y%m%dT%H%M%S}.{suffix}"
    partial = copy.with_name(f"{_PARTIAL}{copy.name}")
    if is_sqlite(database):
        copy_sqlite(Path(database["NAME"]), partial)
    else:
        try:
            dump_postgres(database, partial)
        except OpsError as error:
            partial.unlink(missing_ok=True)
            return f"no copy was made: {error}"
    partial.replace(copy)
    write_private(home.backups / UNFINISHED, json.dumps({"copy": copy.name, "applied": sorted(applied)}))
    for old in sorted(home.backups.glob("before-migration-*"))[:-MAX_COPIES]:
        old.unlink()
    return f"its copy is {copy}"


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
