import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def end_sessions(apps, schema_editor):
    """Delete the sessions of earlier versions, whose keys are not hashed: a copy of them would open them."""
    apps.get_model("sessions", "Session").objects.using(schema_editor.connection.alias).all().delete()


class Migration(migrations.Migration):
    """Adds sessions that are stored under the hashes of their keys. Everyone logs in again."""

    dependencies = [("jobs", "0016_names_of_relations"), ("sessions", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Session",
            fields=[
                ("session_key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"verbose_name": "session", "verbose_name_plural": "sessions", "abstract": False},
        ),
        migrations.RunPython(end_sessions, migrations.RunPython.noop),
    ]
