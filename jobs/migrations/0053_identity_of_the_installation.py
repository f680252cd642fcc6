from django.db import migrations, models


class Migration(migrations.Migration):
    # They are empty until the next `up`, or `web --migrate`, writes them.
    dependencies = [("jobs", "0052_checkpoint_copies")]

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
            "key",
            models.CharField(
                blank=True,
                default="",
                help_text="names the secret key; empty: not known yet",
                max_length=16,
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
