from django.db import migrations, models


class Migration(migrations.Migration):
    # A minimum of `namespaces` stays in its row: it is read as bubblewrap, which the settings page explains.
    dependencies = [("jobs", "0047_promotions_by_state")]

    operations = [
        migrations.AlterField(
            "installationsettings",
            "sandbox_minimum",
            models.CharField(
                choices=[("bubblewrap", "bubblewrap"), ("landlock", "landlock"), ("process", "process")],
                default="landlock",
                help_text="the weakest level of sandbox at which code of users may run",
                max_length=11,
            ),
        ),
    ]
