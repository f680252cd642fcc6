from django.db import migrations, models


class Migration(migrations.Migration):
    # Without a row, leases do not expire. The first scheduler creates it within seconds.
    dependencies = [("jobs", "0048_three_sandbox_levels")]

    operations = [
        migrations.CreateModel(
            "Reachability",
            [
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                (
                    "since",
                    models.DateTimeField(
                        help_text="since when schedulers have reached the database without a break"
                    ),
                ),
                ("seen", models.DateTimeField(help_text="when a scheduler last reached the database")),
            ],
        ),
    ]
