"""Adds labels of workers and jobs, and lets a name belong to one live worker."""

from typing import Any

from django.db import migrations, models

LIVE = ("up", "draining")


def keep_the_newest(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001
    """Mark all but the newest live worker of a name as lost: each registers again, under another name."""
    workers = apps.get_model("jobs", "Worker").objects
    seen = set()
    for pk, name in workers.filter(state__in=LIVE).order_by("-pk").values_list("pk", "name"):
        if name in seen:
            workers.filter(pk=pk).update(state="lost")
        seen.add(name)


class Migration(migrations.Migration):
    dependencies = [("jobs", "0053_identity_of_the_installation")]

    operations = [
        migrations.AddField(
            "job",
            "labels",
            models.JSONField(default=dict, help_text="{name: value}: of the workers that may run it"),
        ),
        migrations.AddField(
            "worker",
            "labels",
            models.JSONField(default=dict, help_text="{name: value}; jobs may ask for them"),
        ),
        migrations.AddField(
            "worker",
            "process",
            models.CharField(
                blank=True,
                default="",
                help_text="random, one for each start: identifies a repeated call",
                max_length=32,
            ),
        ),
        migrations.RunPython(keep_the_newest, migrations.RunPython.noop),
        migrations.AddConstraint(
            "worker",
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(state__in=LIVE),
                name="one_live_worker_of_a_name",
            ),
        ),
    ]
