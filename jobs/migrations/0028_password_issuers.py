import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds to users who made the login link of the session in which their password was set."""

    dependencies = [("jobs", "0025_audit_chain")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="password_issuer",
            field=models.ForeignKey(
                help_text=(
                    "who made the login link of the session in which the password was set, and may know it"
                ),
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        )
    ]
