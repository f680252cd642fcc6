import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Stores with tokens and promotion requests who made the login link of the session behind them."""

    dependencies = [("jobs", "0021_single_person_rule")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="login_issuer",
            field=models.ForeignKey(
                help_text="who made the login link of the session that created the token",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="promotionrequest",
            name="requested_by_issuer",
            field=models.ForeignKey(
                help_text="who made the login link of the session that opened it",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
