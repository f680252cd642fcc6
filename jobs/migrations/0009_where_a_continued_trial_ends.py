"""Where a completed trial ends that trains on, apart from where rungs end."""

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
