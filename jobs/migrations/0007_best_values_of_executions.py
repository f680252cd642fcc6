"""Adds the running best of an execution's objective, which pruners compare."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("jobs", "0006_analyses_and_trials_by_score")]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="best",
            field=models.JSONField(
                default=list,
                help_text="with a pruner: each epoch at which the best value changed, and that value",
            ),
        ),
    ]
