import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds deletions that can be undone, the time at which a file was stored, and endpoints that are down."""

    dependencies = [
        ("jobs", "0013_gate_revisions"),
    ]

    operations = [
        migrations.AddField(
            model_name="artifact",
            name="stored",
            field=models.DateTimeField(
                auto_now_add=True,
                default=django.utils.timezone.now,
                help_text="when a file with this content was last stored",
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="endpoint",
            name="is_down",
            field=models.BooleanField(
                default=False, help_text="no version is served, though the stages keep theirs"
            ),
        ),
        migrations.AddField(
            model_name="registeredmodel",
            name="last_number",
            field=models.PositiveIntegerField(
                default=0, help_text="the highest number of a deleted version: numbers are never used again"
            ),
        ),
        migrations.CreateModel(
            name="Deletion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("project", "project"),
                            ("dataset", "data set"),
                            ("experiment", "experiment"),
                            ("job", "job"),
                            ("version", "model version"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "target",
                    models.PositiveBigIntegerField(help_text="the primary key of the row that was chosen"),
                ),
                ("label", models.CharField(help_text="what people call it", max_length=300)),
                (
                    "lost",
                    models.JSONField(
                        default=list, help_text="[{what, count, bytes}], as shown before the deletion"
                    ),
                ),
                ("bytes", models.PositiveBigIntegerField(default=0)),
                ("created", models.DateTimeField()),
                (
                    "until",
                    models.DateTimeField(
                        db_index=True, help_text="end of the time in which it can be restored"
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deletions",
                        to="jobs.project",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="dataset",
            name="deletion",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="jobs.deletion",
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="deletion",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="jobs.deletion",
            ),
        ),
        migrations.AddField(
            model_name="job",
            name="deletion",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="jobs.deletion",
            ),
        ),
        migrations.AddField(
            model_name="modelversion",
            name="deletion",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="jobs.deletion",
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="deletion",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="jobs.deletion",
            ),
        ),
        migrations.AddField(
            model_name="registeredmodel",
            name="deletion",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="jobs.deletion",
            ),
        ),
        migrations.AddConstraint(
            model_name="deletion",
            constraint=models.UniqueConstraint(fields=("kind", "target"), name="one_deletion_of_a_row"),
        ),
        migrations.AlterField(
            model_name="releaserecord",
            name="kind",
            field=models.CharField(
                help_text="promote, rollback, stage, take_down or bring_up", max_length=10
            ),
        ),
    ]
