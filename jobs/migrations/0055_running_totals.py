from django.db import migrations, models


class Migration(migrations.Migration):
    # The scheduler counts the attempts that have ended before, a thousand at a time.
    dependencies = [("jobs", "0054_labels_and_names_of_workers")]

    operations = [
        migrations.CreateModel(
            name="RunningTotal",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("name", models.CharField(max_length=40)),
                (
                    "label",
                    models.CharField(blank=True, help_text="the values of the metric's labels", max_length=80),
                ),
                ("value", models.BigIntegerField(default=0)),
                ("changed", models.DateTimeField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("name", "label"), name="running_total_once")],
            },
        ),
        migrations.AddField(
            "attempt",
            "counted",
            models.BooleanField(default=False, help_text="whether its end is in the running totals"),
        ),
        migrations.AddIndex(
            "attempt",
            models.Index(
                condition=models.Q(("counted", False), ("state", "ended")),
                fields=["id"],
                name="ended_and_not_counted",
            ),
        ),
    ]
