from collections import Counter
from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Sum
from django.db.models.functions import Coalesce, Length


def count_event_bytes(apps: Any, schema_editor: Any) -> None:
    """Store the bytes of the events and metric points that are there."""
    del schema_editor
    chunks, points = apps.get_model("jobs", "EventChunk"), apps.get_model("jobs", "MetricChunk")
    job = apps.get_model("jobs", "Job")
    found: Counter[int] = Counter()
    found.update(dict(chunks.objects.values_list("root").annotate(total=Sum(Length("data")))))
    of_root = points.objects.annotate(root=Coalesce("series__job__root", "series__job"))
    found.update(dict(of_root.values_list("root").annotate(total=Sum(Length("data")))))
    for root, size in found.items():
        job.objects.filter(pk=root).update(event_bytes=size)


class Migration(migrations.Migration):
    """Adds quotas of uploads and events, uploads in progress, and the stored bytes of events."""

    dependencies = [("jobs", "0031_one_issuer")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="max_uploads",
            field=models.PositiveIntegerField(
                help_text="quota of uploads in progress; null: the installation's default", null=True
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="max_events",
            field=models.PositiveIntegerField(
                help_text="quota of events a second of its runs; null: the installation's default", null=True
            ),
        ),
        migrations.AddField(
            model_name="job",
            name="event_bytes",
            field=models.BigIntegerField(
                default=0, help_text="stored bytes of its events and metric points (root jobs only)"
            ),
        ),
        migrations.AddField(
            model_name="attempt",
            name="event_rate",
            field=models.PositiveIntegerField(
                default=0, help_text="events a second of its run in the last seconds, for the project's quota"
            ),
        ),
        migrations.CreateModel(
            name="UploadReservation",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                (
                    "bytes",
                    models.PositiveBigIntegerField(
                        help_text="its size, or the bytes received if that is unknown"
                    ),
                ),
                (
                    "until",
                    models.DateTimeField(help_text="end of the lease of the web server that receives it"),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="upload_reservations",
                        to="jobs.project",
                    ),
                ),
            ],
        ),
        migrations.RunPython(count_event_bytes, migrations.RunPython.noop),
    ]
