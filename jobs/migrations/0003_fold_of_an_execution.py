"""Adds the fold and the repeat of an execution; until now each execution was a repeat."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def number_repeats(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001
    """Set the repeat of the executions of earlier searches to their number."""
    apps.get_model("jobs", "Execution").objects.update(repeat=models.F("number"))


class Migration(migrations.Migration):
    dependencies = [("jobs", "0002_attempts_of_many_trials")]

    operations = [
        migrations.AddField("execution", "repeat", models.PositiveIntegerField(default=1)),
        migrations.AddField("execution", "fold", models.PositiveIntegerField(null=True)),
        migrations.RunPython(number_repeats, migrations.RunPython.noop),
    ]
