"""Requires that a database, or a copy of one, is that of an installation."""

import contextlib
import re
import sqlite3
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError

from jobs import program
from jobs.keys import key_ring, secret_keys
from jobs.queries import compatibility
from webapp.ops.database_copies import SQLITE_HEADER, run_postgres
from webapp.ops.errors import OpsError

PREFIX = "jobs_"
"""The beginning of the names of tables that every version of this program has."""
SETTINGS_TABLE = "jobs_installationsettings"
_COPIED_ROWS = r"^COPY \S+\.{table} \((.*?)\) FROM stdin;\n(.*?)^\\\.$"
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


def require_key_in(copy: Path, key_file: Path, source: Path) -> None:
    """Require that a copy of a database belongs to the keys beside it.

    Args:
        copy: the copy. One of a version that does not name its key there belongs to any.
        key_file: the file of the secret key.
        source: the backup that both come from, for the message.

    Raises:
        OpsError: the database has another key, or the file is damaged.
    """
    names = [name for name in _column(copy, SETTINGS_TABLE, "key") if name]
    if not names:
        return
    try:
        keys = secret_keys.parse(key_file.read_text())
    except ValueError as error:
        raise OpsError(f"The secret key in {source} is damaged: {error}.") from error
    # A restored part signs with the one that the database names, also while keys are rotated.
    known = [key_ring.name_of_key(key) for key in keys.all()]
    if names[0] not in known:
        raise OpsError(
            f"The secret key in {source} is {known[0][:8]}, but its database belongs to the key "
            f"{names[0][:8]}: its audit log and its secrets could not be read. Make a new backup. If the "
            "installation itself has lost that key, accept the present one first by "
            f"`{program.command_line('audit seal --reason "…"')}`."
        )


def _column(copy: Path, table: str, column: str) -> list[str]:
    """Return a column's values; none if the copy lacks the table or the column."""
    if _is_sqlite(copy):
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            connection.row_factory = sqlite3.Row
            if table not in _tables(copy):
                return []
            found = connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608  a constant
        return [str(row[column]) for row in found if column in row.keys()]  # noqa: SIM118  a row has values
    script = copy.with_name(f"{copy.name}.sql")
    run_postgres(["pg_restore", "--data-only", f"--table={table}", f"--file={script}", str(copy)], {})
    match = re.search(_COPIED_ROWS.format(table=table), script.read_text(), re.MULTILINE | re.DOTALL)
    if match is None or column not in (names := match[1].replace('"', "").split(", ")):
        return []
    return [line.split("\t")[names.index(column)] for line in match[2].splitlines()]


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
