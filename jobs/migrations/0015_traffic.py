import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds the counts of prediction requests, and the number of the last report that was counted."""

    dependencies = [("jobs", "0014_deletion")]

    operations = [
        migrations.AddField(
            model_name="replica",
            name="run",
            field=models.BigIntegerField(default=0, help_text="start of the server in the last report with counts"),
        ),
        migrations.AddField(
            model_name="replica",
            name="sequence",
            field=models.BigIntegerField(default=0, help_text="the last report with counts of this run"),
        ),
        migrations.CreateModel(
            name="TrafficCount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "version",
                    models.PositiveIntegerField(
                        help_text="number of the version; 0: answered before a version was chosen"
                    ),
                ),
                ("start", models.DateTimeField()),
                ("seconds", models.PositiveIntegerField(help_text="length of the interval")),
                ("requests", models.BigIntegerField(default=0)),
                ("failed", models.BigIntegerField(default=0)),
                (
                    "counts_json",
                    models.JSONField(
                        db_column="counts", default=dict, help_text="a jobs.messages.traffic.Counts"
                    ),
                ),
                (
                    "replica",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="traffic", to="jobs.replica"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["seconds", "start"], name="traffic_by_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("replica", "start", "seconds", "version"), name="traffic_of_interval"
                    )
                ],
            },
        ),
    ]
