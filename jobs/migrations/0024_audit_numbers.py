"""Adds the columns of the new audit chain: numbers without gaps, and the key of its head."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0026_project_quotas")]

    operations = [
        # NULL until the next migration numbers the rows.
        migrations.AddField(
            model_name="auditevent", name="number", field=models.PositiveBigIntegerField(null=True)
        ),
        migrations.AlterField(
            model_name="auditevent",
            name="project",
            field=models.ForeignKey(
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="jobs.project",
            ),
        ),
        migrations.RenameField(model_name="audithead", old_name="count", new_name="number"),
        migrations.AlterField(
            model_name="audithead",
            name="number",
            field=models.PositiveBigIntegerField(default=0, help_text="of the last entry"),
        ),
        migrations.AlterField(
            model_name="audithead",
            name="hash",
            field=models.CharField(help_text="of the last entry", max_length=64),
        ),
        migrations.AddField(
            model_name="audithead",
            name="mac",
            field=models.CharField(
                default="", help_text="authenticates number and hash; empty if they were wrong", max_length=64
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="audithead",
            name="key",
            field=models.CharField(
                default="", help_text="names the secret key with which `mac` was made", max_length=16
            ),
            preserve_default=False,
        ),
    ]
