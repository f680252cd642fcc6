"""Adds the last epoch of a continued trial, separate from the ends of rungs."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("jobs", "0008_revisions_with_a_reason")]

    operations = [
        migrations.AddField(
            model_name="trial",
            name="until",
            field=models.PositiveIntegerField(
                help_text="last epoch of a completed trial that is continued", null=True
            ),
        ),
    ]
