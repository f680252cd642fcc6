"""Requires that a database, or a copy of one, is that of an installation."""

import contextlib
import re
import sqlite3
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError

from jobs import program
from jobs.queries import compatibility
from webapp.ops.database_copies import SQLITE_HEADER, run_postgres
from webapp.ops.errors import OpsError

PREFIX = "jobs_"
"""The beginning of the names of tables that every version of this program has."""
_LISTED_TABLE = re.compile(r"^\d+; \d+ \d+ TABLE \S+ (\S+) ", re.MULTILINE)


def require_installation() -> None:
    """Require that the database of this process has an installation.

    Raises:
        OpsError: it is empty, or cannot be read. The message names the home and a way on.
    """
    try:
        schema = compatibility.database_schema()
    except DatabaseError as error:
        raise OpsError(f"The database cannot be read: {str(error).strip().splitlines()[0]}") from error
    if not schema:
        raise OpsError(
            "The database is empty: there is no installation to back up. Set TRAINYARD_HOME, which is "
            f"{settings.TRAINYARD_HOME} now, and TRAINYARD_DATABASE_URL as the parts have them. A new "
            f"installation begins with `{program.command_line('up')}`."
        )


def require_installation_in(copy: Path, source: Path) -> None:
    """Require that a copy of a database has the tables of an installation.

    Args:
        copy: the copy, SQLite or PostgreSQL.
        source: the file that it comes from, for the message.

    Raises:
        OpsError: it has none.
    """
    if not any(name.startswith(PREFIX) for name in _tables(copy)):
        raise OpsError(
            f"{source} is no backup of an installation: its database has no tables of Trainyard. It was made "
            "from an empty database, such as with another TRAINYARD_HOME or TRAINYARD_DATABASE_URL."
        )


def _tables(copy: Path) -> list[str]:
    if _is_sqlite(copy):
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return [str(row[0]) for row in rows]
    listed = copy.with_name(f"{copy.name}.list")
    run_postgres(["pg_restore", "--list", f"--file={listed}", str(copy)], {})
    return _LISTED_TABLE.findall(listed.read_text())


def _is_sqlite(copy: Path) -> bool:
    with copy.open("rb") as file:
        return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER
