import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds uploads that arrive in parts, and versions of several files."""

    dependencies = [("jobs", "0032_upload_and_event_quotas")]

    operations = [
        migrations.CreateModel(
            name="ResumableUpload",
            fields=[
                ("key", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("name", models.CharField(help_text="name of the file", max_length=200)),
                ("length", models.PositiveBigIntegerField(help_text="bytes of the whole file")),
                (
                    "sha256",
                    models.CharField(
                        blank=True, help_text="set before the file moves to the store", max_length=64
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "until",
                    models.DateTimeField(
                        db_index=True, help_text="when it expires unless a further part arrives"
                    ),
                ),
                (
                    "artifact",
                    models.ForeignKey(
                        help_text="set after that",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.artifact",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="resumable_uploads",
                        to="jobs.project",
                    ),
                ),
                (
                    "reservation",
                    models.OneToOneField(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to="jobs.uploadreservation"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FurtherFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("position", models.PositiveSmallIntegerField()),
                (
                    "artifact",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="jobs.artifact"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="further_files",
                        to="jobs.datasetversion",
                    ),
                ),
            ],
            options={"ordering": ["position"]},
        ),
        migrations.AddConstraint(
            model_name="furtherfile",
            constraint=models.UniqueConstraint(fields=("version", "position"), name="further_file_position"),
        ),
    ]
