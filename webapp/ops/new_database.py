"""Creates all tables in an empty database at once; an older database is migrated step by step.

Migrations compute each step's models, which takes seconds. A test compares the tables from both ways.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.sql import emit_post_migrate_signal
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def is_empty() -> bool:
    """Return whether the database has no tables."""
    return not connection.introspection.table_names()


def create() -> None:
    """Create the tables for the models that all migrations lead to, and record these as applied.

    In one transaction: a start that is killed leaves the database empty.
    """
    loader = MigrationLoader(connection)
    # SQLite can switch off foreign keys, which creating tables requires, only outside of a transaction.
    with connection.constraint_checks_disabled(), transaction.atomic(), created_tables(loader):
        MigrationRecorder(connection).migration_qs.bulk_create(
            MigrationRecorder.Migration(app=app, name=name) for app, name in loader.disk_migrations
        )
        # Creates the content types and permissions.
        emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)


@contextmanager
def created_tables(loader: MigrationLoader | None = None) -> Iterator[None]:
    """Create the tables, without rows, in the caller's transaction.

    PostgreSQL gets indexes and foreign keys at the end of the block.
    """
    loader = loader or MigrationLoader(connection)
    with connection.schema_editor() as editor:
        editor.create_model(MigrationRecorder.Migration)
        for model in loader.project_state().apps.get_models():
            if model._meta.app_label in loader.migrated_apps and model._meta.can_migrate(connection):
                editor.create_model(model)
        yield
