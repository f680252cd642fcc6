import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0051_serving_credentials")]

    operations = [
        migrations.AddField(
            "checkpoint",
            "stored",
            models.DateTimeField(
                help_text="when its copy in object storage was complete; null: there is none", null=True
            ),
        ),
        migrations.AddIndex(
            "checkpoint",
            models.Index(
                condition=models.Q(("stored__isnull", False)), fields=["job"], name="checkpoints_with_copies"
            ),
        ),
        migrations.CreateModel(
            "WaitingAuditEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("time", models.DateTimeField()),
                ("action", models.CharField(max_length=60)),
                ("target", models.CharField(max_length=120)),
                ("detail", models.JSONField(default=dict)),
                (
                    "actor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="jobs.project",
                    ),
                ),
            ],
        ),
    ]
