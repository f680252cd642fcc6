from django.db import migrations, models


class Migration(migrations.Migration):
    # Both are empty until the next `up`, or `web --migrate`, writes them.
    dependencies = [("jobs", "0048_three_sandbox_levels")]

    operations = [
        migrations.AddField(
            "installationsettings",
            "identity",
            models.CharField(
                blank=True,
                default="",
                help_text="distinguishes the installation from its copies; the artifact store has it too",
                max_length=32,
            ),
        ),
        migrations.AddField(
            "installationsettings",
            "program",
            models.CharField(
                blank=True,
                default="",
                help_text="the version of the program that prepared the database",
                max_length=50,
            ),
        ),
    ]
