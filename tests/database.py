"""The test database: emptied after tests that commit, brought to an earlier version, and copied.

Django deletes from every table, or truncates all of them on PostgreSQL, and then creates the content types
and permissions of all models again, each time. Here only tables with rows are emptied; those two are kept.
"""

import fcntl
import gc
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TextIO

from django.db import connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import TransactionTestCase

type Target = tuple[str, str]
KEPT = {"django_content_type", "auth_permission"}
"""Tables whose rows migrations create again after each of Django's own deletions."""
_COPIES: dict[Target | None, sqlite3.Connection] = {}
"""The database at versions that tests need, in memory; None is the present one."""
_MODELS: dict[Target, Any] = {}
_VERSIONS: dict[Target, str] = {}
"""The PostgreSQL databases at versions that tests need."""
_LOCKS: list[TextIO] = []
TABLES_VARIABLE = "TRAINYARD_TEST_TABLES"
"""The file of the tables of another run, for the tests that a test runs."""


def empty(alias: str) -> None:
    """Delete all rows of the models in a database, except `KEPT`."""
    emptied = connections[alias]
    names = emptied.introspection.django_table_names(only_existing=True, include_views=False)
    quoted = {name: emptied.ops.quote_name(name) for name in names if name not in KEPT}
    filled = " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {table})" for name, table in quoted.items()
    )
    # In one transaction: foreign keys are checked at its end, so the order of the tables does not matter.
    with transaction.atomic(alias), emptied.cursor() as cursor:
        cursor.execute(filled)
        for (name,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {quoted[name]}")


def _teardown(case: TransactionTestCase) -> None:
    for alias in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
        empty(alias)


def install() -> None:
    """Let every test that commits end with `empty`."""
    TransactionTestCase._fixture_teardown = _teardown  # type: ignore[attr-defined]


def migrate(target: Target) -> Any:
    """Migrate to a target; return the models of that time."""
    with _without_collections():
        single_steps().migrate([target])
    if target not in _MODELS:
        _MODELS[target] = single_steps().loader.project_state([target]).apps
    return _MODELS[target]


def single_steps() -> MigrationExecutor:
    """Return an executor for the single migrations, including replaced ones."""
    executor = MigrationExecutor(connection)
    executor.loader.replace_migrations = False  # type: ignore[attr-defined]
    executor.loader.build_graph()
    for squashed, migration in executor.loader.replacements.items():
        executor.loader.graph.remove_replacement_node(squashed, migration.replaces)
    return executor


def upgrade() -> None:
    """Apply all migrations that are missing."""
    executor = MigrationExecutor(connection)
    latest = executor.loader.graph.leaf_nodes()
    if executor.migration_plan(latest):
        with _without_collections():
            executor.migrate(latest)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Look for no garbage: a migration makes many models, and most of them are needed until its end."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def upgrade_rows(target: Target, tables: Sequence[str]) -> None:
    """Apply the migrations up to a target, and give the rows of `tables` to the present version.

    For tests within `earlier` of rows that later migrations leave as they are: applying those takes seconds.
    Without SQLite they are applied.
    """
    migrate(target)
    if connection.vendor != "sqlite":
        upgrade()
        return
    copies = {}
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"SELECT * FROM {table}")
            copies[table] = [column[0] for column in cursor.description], cursor.fetchall()
    _restore(None)
    # The rows that they refer to are not copied.
    with connection.constraint_checks_disabled(), connection.cursor() as cursor:
        for table, (columns, rows) in copies.items():
            places = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)


@contextmanager
def earlier(target: Target) -> Iterator[Any]:
    """Give the models of an earlier version; the database has it until the test upgrades, or the block ends.

    Migrating back takes seconds: it is done once for each version, which is then copied, and begins at the
    last one that was made.
    """
    if connection.vendor != "sqlite":
        with _another_database(target):
            yield _MODELS[target]
        return
    if None not in _COPIES:
        _copy(None)
    if target not in _COPIES:
        _restore(next(reversed(_COPIES)))
        migrate(target)
        _copy(target)
    _restore(target)
    try:
        yield _MODELS[target]
    finally:
        _restore(None)


@contextmanager
def _another_database(target: Target) -> Iterator[None]:
    """Use a database of its own at an earlier version, on PostgreSQL, until the block ends."""
    present = connection.settings_dict["NAME"]
    copy = f"{present}_copy"
    try:
        if target not in _VERSIONS:
            last = next(reversed(_VERSIONS.values()), present)
            _use(name := f"{present}_{target[1]}", made_of=last)
            migrate(target)
            _VERSIONS[target] = name
        _use(copy, made_of=_VERSIONS[target])
        yield
    finally:
        _use(present)
        _change_databases(f'DROP DATABASE IF EXISTS "{copy}" WITH (FORCE)')


def _use(name: str, *, made_of: str | None = None) -> None:
    """Connect to another database from now on, which is created as a copy if `made_of` names one."""
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    if made_of is not None:
        # PostgreSQL copies no database that is in use, and other threads of a test may have left connections.
        end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{made_of}'"
        _change_databases(end, f'CREATE DATABASE "{name}" TEMPLATE "{made_of}"')
    connection.settings_dict["NAME"] = name


def _change_databases(*statements: str) -> None:
    with connection._nodb_cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def drop_versions() -> None:
    """Drop the databases at earlier versions."""
    while _VERSIONS:
        _, name = _VERSIONS.popitem()
        _change_databases(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def file_of_tables() -> Path:
    """Return the file with the migrated tables, which all processes of a run copy; the first makes it."""
    return Path(os.environ.get(TABLES_VARIABLE) or Path(os.environ["TRAINYARD_TEST_HOME"], "tables.sqlite3"))


def copy_tables(name: str) -> bool:
    """Begin the test database `name` with the tables of the run; False if this process has to make them."""
    path = file_of_tables()
    lock = path.with_suffix(".lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be making them
    if path.exists():
        lock.close()
        shutil.copy(path, name)
        return True
    _LOCKS.append(lock)
    return False


def share_tables() -> None:
    """Write the file that other processes copy, if it is this process that made the tables."""
    if not _LOCKS:
        return
    connection.ensure_connection()
    path = file_of_tables()
    unfinished = path.with_suffix(".part")
    with closing(sqlite3.connect(unfinished)) as file:
        connection.connection.backup(file)
    unfinished.chmod(0o600)
    unfinished.rename(path)
    _LOCKS.pop().close()


def _copy(version: Target | None) -> None:
    connection.ensure_connection()
    _COPIES[version] = sqlite3.connect(":memory:", check_same_thread=False)
    connection.connection.backup(_COPIES[version])


def _restore(version: Target | None) -> None:
    connection.ensure_connection()
    _COPIES[version].backup(connection.connection)
