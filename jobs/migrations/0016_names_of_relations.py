import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Renames the relation of a root job, and completes a help text. No table changes."""

    dependencies = [("jobs", "0015_traffic")]

    operations = [
        migrations.AlterField(
            model_name="job",
            name="root",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="descendants",
                to="jobs.job",
            ),
        ),
        migrations.AlterField(
            model_name="releaserecord",
            name="kind",
            field=models.CharField(
                help_text="promote, rollback, stage, take_down, bring_up or label", max_length=10
            ),
        ),
    ]
