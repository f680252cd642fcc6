import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def delete_responses(apps, schema_editor):
    """Delete the stored responses to repeated requests: they may contain login links in clear."""
    apps.get_model("jobs", "IdempotencyKey").objects.using(schema_editor.connection.alias).all().delete()


class Migration(migrations.Migration):
    """Adds the counts of failed logins, who made a login link, and hashes of idempotency keys."""

    dependencies = [("jobs", "0017_sessions")]

    operations = [
        migrations.CreateModel(
            name="LoginAttempts",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(help_text="HMAC of the name or address", max_length=64, unique=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("blocked_until", models.DateTimeField(null=True)),
                ("last", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.AlterField(
            model_name="idempotencykey",
            name="key",
            field=models.CharField(help_text="token id and the hash of the key of the client", max_length=240),
        ),
        migrations.RunPython(delete_responses, migrations.RunPython.noop),
        migrations.AddField(
            model_name="loginlink",
            name="issuer",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
