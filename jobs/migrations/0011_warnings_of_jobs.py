from django.db import migrations, models


class Migration(migrations.Migration):
    """What runners warn of stood in the log of events alone, where no result showed it."""

    dependencies = [("jobs", "0010_counts_from_indexes")]

    operations = [
        migrations.AddField(
            "job",
            "warnings",
            models.JSONField(default=list, help_text="[{code, message}], reported by runners, without duplicates"),
        ),
    ]
