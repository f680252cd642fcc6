from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds indexes for a job's progress counts: each poll read ten thousand rows for two numbers."""

    dependencies = [("jobs", "0009_where_a_continued_trial_ends")]

    operations = [
        migrations.AddIndex("trial", models.Index(fields=["job", "finished"], name="trials_by_end")),
        migrations.AddIndex(
            "trial", models.Index(fields=["job"], name="trials_by_hand", condition=models.Q(source="hand"))
        ),
        migrations.AddIndex("execution", models.Index(fields=["trial", "state"], name="executions_by_state")),
    ]
