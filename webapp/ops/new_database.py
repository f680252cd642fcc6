"""Creates all tables of an empty database at once; an older database is migrated step by step instead.

Migrations compute the models of each step, which takes seconds. A test compares the tables of both ways.
"""

from django.apps import apps
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection, models, router, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def is_empty() -> bool:
    """Return whether the database has no tables."""
    return not connection.introspection.table_names()


def create() -> None:
    """Create the tables of the present models, and record all migrations as applied.

    In one transaction: a start that is killed leaves the database empty.
    """
    loader = MigrationLoader(connection)
    recorder = MigrationRecorder(connection)
    # SQLite can switch off foreign keys, which creating tables requires, only outside of a transaction.
    with (
        connection.constraint_checks_disabled(),
        transaction.atomic(),
        connection.schema_editor() as editor,
    ):
        for model in (recorder.Migration, *_models(loader.migrated_apps)):
            editor.create_model(model)
        recorder.migration_qs.bulk_create(
            recorder.Migration(app=app, name=name) for app, name in loader.disk_migrations
        )
        # Creates the content types and permissions.
        emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)


def _models(labels: set[str]) -> list[type[models.Model]]:
    found = []
    for app in apps.get_app_configs():
        if app.label in labels:
            found += router.get_migratable_models(app, connection.alias)
    return [model for model in found if model._meta.can_migrate(connection)]
