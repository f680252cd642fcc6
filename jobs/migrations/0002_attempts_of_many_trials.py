"""Lets an attempt hold any number of trials; existing attempts keep their one trial."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def copy(apps: Any, _schema_editor: Any) -> None:
    """Copy the trial of every attempt to the new table."""
    attempts = apps.get_model("jobs", "Attempt").objects.exclude(trial=None)
    holds = apps.get_model("jobs", "Attempt").trials.through
    rows = attempts.values_list("pk", "trial_id").iterator(chunk_size=2000)
    holds.objects.bulk_create(
        (holds(attempt_id=attempt, trial_id=trial) for attempt, trial in rows), batch_size=500
    )


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="attempt",
            name="trial",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.trial"
            ),
        ),
        migrations.AddField(
            model_name="attempt",
            name="trials",
            field=models.ManyToManyField(related_name="attempts", to="jobs.trial"),
        ),
        migrations.RunPython(copy, migrations.RunPython.noop),
        migrations.RemoveField(model_name="attempt", name="trial"),
    ]
