from datetime import timedelta

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone

GRACE = timedelta(days=90)


def keep_clients_working(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Let people's tokens with the scope `serve` ask for predictions for 90 more days.

    Until now `serve` was the scope of clients and of prediction servers, and no row distinguishes them. Tokens of
    the installation itself belong to its prediction server, which is no client.
    """
    tokens = apps.get_model("jobs", "ApiToken")
    until = timezone.now() + GRACE
    # Few rows, and SQLite cannot search a JSON list.
    for token in tokens.objects.filter(user__is_service=False):
        if "serve" in token.scopes:
            token.predicts_until = until
            token.save(update_fields=["predicts_until"])


class Migration(migrations.Migration):
    """Adds the parents of tokens, and separates clients of the prediction server from replicas."""

    dependencies = [("jobs", "0018_logins")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="parent",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="children",
                to="jobs.apitoken",
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="endpoints",
            field=models.JSONField(
                help_text="names of the endpoints that it may ask; NULL: all of its owner's projects",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="predicts_until",
            field=models.DateTimeField(
                help_text="until then a token with the scope serve may also ask for predictions", null=True
            ),
        ),
        migrations.RunPython(keep_clients_working, migrations.RunPython.noop),
    ]
