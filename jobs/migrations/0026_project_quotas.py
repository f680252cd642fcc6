from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds quotas of disk and of unfinished jobs to projects; null means the installation's default."""

    dependencies = [("jobs", "0022_login_issuers")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="max_bytes",
            field=models.PositiveBigIntegerField(
                help_text="quota of bytes of its files; null: the installation's default", null=True
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="max_jobs",
            field=models.PositiveIntegerField(
                help_text="quota of unfinished jobs; null: the installation's default", null=True
            ),
        ),
    ]
