from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds a job's warnings: until now they were only in the log of events, not in the results."""

    dependencies = [("jobs", "0010_counts_from_indexes")]

    operations = [
        migrations.AddField(
            "job",
            "warnings",
            models.JSONField(default=list, help_text="[{code, message}], reported by runners, without duplicates"),
        ),
    ]
