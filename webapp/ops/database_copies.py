"""Copies databases consistently while they are in use, and puts a copy in the place of a database."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psycopg
from django.apps import apps

from webapp.ops.errors import OpsError

SQLITE_HEADER, POSTGRES_HEADER = b"SQLite format 3\0", b"PGDMP"
"""The first bytes of each kind of copy."""
LIBPQ = {
    "HOST": "PGHOST",
    "PORT": "PGPORT",
    "USER": "PGUSER",
    "PASSWORD": "PGPASSWORD",
    "NAME": "PGDATABASE",
}
LIBPQ_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey")
# The tables of other programs in the same schema are left alone.
_DROP_OWN_TABLES = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables
        WHERE schemaname = current_schema() AND split_part(tablename, '_', 1) IN ({labels}) LOOP
        EXECUTE format('DROP TABLE %I CASCADE', name);
    END LOOP;
END $$;
"""
# `pg_restore` has emptied the search path.
_AFTER = """
RESET search_path;
DO $$ BEGIN
    IF EXISTS (
        SELECT FROM pg_attribute
        WHERE attrelid = to_regclass('{table}') AND attname = '{column}' AND NOT attisdropped
    ) THEN {statement}; END IF;
END $$;
"""


class ProgramMissing(OpsError):
    """A program of PostgreSQL is not installed."""


def is_sqlite(database: Mapping[str, Any]) -> bool:
    """Return whether Django's `database` is SQLite; the other kind is PostgreSQL."""
    return str(database["ENGINE"]).endswith("sqlite3")


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite database consistently while it is in use; the copy has mode 0600."""
    # Created first, because sqlite3 would create it with the mode of the umask.
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    with (
        contextlib.closing(
            sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=60)
        ) as source_connection,
        contextlib.closing(sqlite3.connect(target)) as target_connection,
    ):
        source_connection.backup(target_connection)


def dump_postgres(database: Mapping[str, Any], target: Path) -> None:
    """Dump a PostgreSQL database to `target` in `pg_dump`'s custom format.

    Raises:
        ProgramMissing: `pg_dump` is not installed.
        OpsError: it failed.
    """
    run_postgres(["pg_dump", "--format=custom", "--no-owner", f"--file={target}"], database)


def run_postgres(command: list[str], database: Mapping[str, Any]) -> None:
    """Run a PostgreSQL program on Django's `database`. The password is passed in the environment.

    Raises:
        ProgramMissing: the program is not installed.
        OpsError: it failed.
    """
    program = shutil.which(command[0])
    if program is None:
        raise ProgramMissing(f"A PostgreSQL database needs `{command[0]}`; install postgresql-client.")
    variables = {variable: str(database[key]) for key, variable in LIBPQ.items() if database.get(key)}
    options = database.get("OPTIONS", {})
    variables |= {f"PG{name.upper()}": str(options[name]) for name in LIBPQ_OPTIONS if name in options}
    done = subprocess.run(  # noqa: S603  fixed programs and arguments
        [program, *command[1:]], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OpsError(f"{command[0]} failed: {done.stderr.strip()}")


def has_tables(database: Mapping[str, Any]) -> bool:
    """Return whether a database has tables. A missing SQLite file has none.

    Raises:
        OpsError: the database cannot be read.
    """
    try:
        if is_sqlite(database):
            path = Path(database["NAME"])
            if not path.exists():
                return False
            with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
                return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
        with _connect(database) as server:
            found = server.execute("SELECT 1 FROM pg_tables WHERE schemaname = current_schema()")
            return found.fetchone() is not None
    except (sqlite3.Error, psycopg.Error) as error:
        raise OpsError(f"The database cannot be read: {str(error).strip()}") from error


def read_column(database: Mapping[str, Any], query: str) -> list[str] | None:
    """Return the values that a query finds; None if the table or the column is missing.

    A SQLite database that is missing or damaged has none either: a backup replaces it.

    Raises:
        OpsError: PostgreSQL cannot be asked.
    """
    try:
        if is_sqlite(database):
            uri = f"{Path(database['NAME']).as_uri()}?mode=ro"
            with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
                rows = connection.execute(query).fetchall()
        else:
            with _connect(database) as server:
                rows = server.execute(query.encode()).fetchall()
    # Not the same as a missing table: callers would take an installation for a new one.
    except psycopg.OperationalError as error:
        raise OpsError(f"The database cannot be read: {str(error).strip()}") from error
    except (sqlite3.Error, psycopg.Error):
        return None
    return [str(row[0]) for row in rows]


def _connect(database: Mapping[str, Any]) -> "psycopg.Connection[tuple[Any, ...]]":
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    values = {name: database[key] for key, name in names.items() if database.get(key)}
    options = database.get("OPTIONS", {})
    values |= {name: options[name] for name in LIBPQ_OPTIONS if name in options}
    return psycopg.connect(connect_timeout=10, **values)


def check_copy(path: Path) -> None:
    """Check that a copy of a database is complete.

    Raises:
        OpsError: it is damaged.
    """
    with path.open("rb") as file:
        if file.read(len(SQLITE_HEADER)) != SQLITE_HEADER:
            # Lists the content, and so reads the copy's index; its data have the digest in the manifest.
            run_postgres(["pg_restore", "--list", str(path)], {})
            return
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            result = connection.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        result = str(error)
    if result != "ok":
        raise OpsError(f"The database in the backup is damaged: {result}")


def replace_sqlite(target: Path, copy: Path, statements: Iterable[tuple[str, str]]) -> None:
    """Put a copy in the place of a SQLite database.

    Args:
        target: the database.
        copy: the copy, which is moved.
        statements: what to execute in the copy before: each with the `table.column` that it needs.
    """
    with contextlib.closing(sqlite3.connect(copy)) as connection, connection:
        for needed, statement in statements:
            has = "SELECT 1 FROM pragma_table_info(?) WHERE name = ?"
            if connection.execute(has, needed.split(".")).fetchone():
                connection.execute(statement)
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    # They belong to the replaced database; SQLite would apply them to the new one.
    for leftover in (f"{target}-wal", f"{target}-shm", f"{target}-journal"):
        Path(leftover).unlink(missing_ok=True)
    if copy.stat().st_dev == target.parent.stat().st_dev:
        copy.replace(target)
        return
    beside = target.with_name(f".{target.name}.restored")
    os.close(os.open(beside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
    shutil.copyfile(copy, beside)
    beside.replace(target)


def replace_postgres(database: Mapping[str, Any], dump: Path, statements: Iterable[tuple[str, str]]) -> None:
    """Replace a PostgreSQL database's content by a dump, in one transaction.

    `pg_restore --clean` removes only the tables that the dump has: those of a newer program would remain, and
    the next upgrade would fail at them. So all tables of this program go first.

    Args:
        database: Django's.
        dump: a file of `pg_dump`, in its custom format.
        statements: what to execute after that: each with the `table.column` that it needs.
    """
    labels = {"django"} | {config.label for config in apps.get_app_configs()}
    before, script, after = (dump.with_name(f"{dump.stem}-{part}.sql") for part in ("before", "all", "after"))
    before.write_text(_DROP_OWN_TABLES.format(labels=", ".join(f"'{label}'" for label in sorted(labels))))
    parts = [(*needed.split("."), text) for needed, text in statements]
    after.write_text("".join(_AFTER.format(table=t, column=c, statement=text) for t, c, text in parts))
    # A file, not a pipe: if one program ended early, the other would commit a part.
    run_postgres(
        ["pg_restore", "--clean", "--if-exists", "--no-owner", f"--file={script}", str(dump)], database
    )
    run_postgres(
        [
            *("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction"),
            *(f"--file={file}" for file in (before, script, after)),
            f"--dbname={database['NAME']}",
        ],
        database,
    )
