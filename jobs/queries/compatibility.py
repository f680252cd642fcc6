"""Compares this program with the database: its schema, and the version of the program that prepared it."""

import pkgutil
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from jobs import program, unfinished_move, unfinished_restore
from jobs.models import InstallationSettings
from jobs.queries.code.installation import KEY

OWN_APP = "jobs"
_RELEASE = re.compile(r"(\d+)\.(\d+)")
type Name = tuple[str, str]
"""An app's label and its migration's name."""


class Incompatible(Exception):
    """The program and the database do not belong together. The message has both versions and a way on."""


@dataclass(frozen=True)
class SchemaDifference:
    """How the database's schema differs from the one of the program.

    Attributes:
        unknown: migrations of a newer program, which the database has.
        missing: migrations that the database lacks.
    """

    unknown: tuple[Name, ...]
    missing: tuple[Name, ...]


def require(*, migrates: bool = False) -> None:
    """Require that this program may use the database.

    Args:
        migrates: the caller migrates an older database next.

    Raises:
        Incompatible: it may not.
    """
    if (sentence := problem(migrates=migrates)) is not None:
        raise Incompatible(sentence)


def problem(*, migrates: bool = False) -> str | None:
    """Return why this program must not use the database, in sentences; None if it may.

    Args:
        migrates: the caller migrates an older database next.
    """
    if (sentence := unfinished_restore.problem(Path(settings.TRAINYARD_HOME))) is not None:
        return sentence
    difference = schema_difference()
    if difference.unknown:
        unknown = _newest(difference.unknown)
        return _newer(f"the database has {unknown}, and this program ends at {own_schema()}")
    if difference.missing:
        # The target of a move gets its tables in one step, the last one.
        if not database_schema() and (sentence := unfinished_move.problem()) is not None:
            return sentence
        return None if migrates else _older()
    prepared = recorded_program()
    if not prepared or prepared == program.program_version():
        return None
    if migrates:
        return _newer("their schemas are equal") if _is_later_release(prepared) else None
    return (
        f"This program has version {program.program_version()}, and the database was prepared by version "
        f"{prepared}. All parts must have the same version: install {prepared} here, or start "
        f"`{program.command_line('up')}` or `{program.command_line('web --migrate')}` with version "
        f"{program.program_version()} first."
    )


def _newer(difference: str) -> str:
    prepared = recorded_program()
    newer = f"version {prepared}" if prepared else "a newer version"
    return (
        f"The database belongs to {newer} of Trainyard; this program has version "
        f"{program.program_version()} ({difference}). Nothing was changed. Start {newer}. Or go back: "
        f"let {newer} restore a backup from before the upgrade (`restore FILE --force`), then start this one."
    )


def _older() -> str:
    starts = f"`{program.command_line('up')}` or `{program.command_line('web --migrate')}`"
    if not (schema := database_schema()):
        return (
            f"The database is empty: start {starts} first, which creates its tables. If there is an "
            f"installation already, correct TRAINYARD_HOME, which is {settings.TRAINYARD_HOME} now, or "
            "TRAINYARD_DATABASE_URL."
        )
    prepared = recorded_program()
    older = f"version {prepared} of Trainyard" if prepared else "an older version of Trainyard"
    return (
        f"The database has the schema of {older} ({schema}); this program has version "
        f"{program.program_version()} ({own_schema()}). Start {starts} first: it copies and migrates the "
        "database."
    )


def _is_later_release(prepared: str) -> bool:
    """Return whether a version has other data than this one: patches have the same."""
    theirs, own = _RELEASE.match(prepared), _RELEASE.match(program.program_version())
    return bool(theirs and own) and _numbers(theirs) > _numbers(own)


def _numbers(release: re.Match[str] | None) -> tuple[int, ...]:
    return tuple(map(int, release.groups())) if release else ()


def recorded_program() -> str:
    """Return the version of the program that prepared the database; empty if that is unknown."""
    return recorded("program")


def recorded(field: str) -> str:
    """Return a text of the installation's row; empty if the database lacks the row or the column."""
    table = InstallationSettings._meta.db_table
    with connection.cursor() as cursor:
        # A failed query would end a transaction of PostgreSQL.
        if table not in connection.introspection.table_names(cursor):
            return ""
        columns = connection.introspection.get_table_description(cursor, table)
    if field not in {column.name for column in columns}:
        return ""
    row = InstallationSettings.objects.filter(pk=KEY).values_list(field, flat=True).first()
    return str(row or "")


def schema_difference() -> SchemaDifference:
    """Compare the migrations that the database has with those of this program."""
    applied = {name for name in MigrationRecorder(connection).applied_migrations() if _is_migrated(name[0])}
    own = _names_on_disk()
    if applied == own:
        return SchemaDifference((), ())
    # A migration may replace several that a database has instead: only the graph knows that.
    executor = MigrationExecutor(connection)
    loader: MigrationLoader = executor.loader
    replaced = {name for migration in loader.disk_migrations.values() for name in migration.replaces}
    unknown = applied - loader.disk_migrations.keys() - replaced
    plan = executor.migration_plan(loader.graph.leaf_nodes())
    return SchemaDifference(
        tuple(sorted(unknown)), tuple((migration.app_label, migration.name) for migration, _ in plan)
    )


def _is_migrated(label: str) -> bool:
    return label in {config.label for config in apps.get_app_configs()}


def _names_on_disk() -> set[Name]:
    """Return the names of all migrations, without importing them: that takes a tenth of a second."""
    names: set[Name] = set()
    for config in apps.get_app_configs():
        module_name, _ = MigrationLoader.migrations_module(config.label)
        if module_name is None:
            continue
        try:
            module = import_module(module_name)
        except ModuleNotFoundError:
            continue
        names |= {
            (config.label, found.name)
            for found in pkgutil.iter_modules(module.__path__)
            if not found.ispkg and found.name[0] not in "_~"
        }
    return names


def own_schema() -> str:
    """Return the name of this program's last migration."""
    return _newest(name for name in _names_on_disk() if name[0] == OWN_APP)


def database_schema() -> str:
    """Return the name of the last migration that the database has; empty if it has none."""
    applied = MigrationRecorder(connection).applied_migrations()
    return _newest(name for name in applied if name[0] == OWN_APP)


def _newest(names: Iterable[Name]) -> str:
    # A squashed migration begins with the number of the first one that it replaces.
    return max((name for _, name in names), default="")
