from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Stores all issuers of a login: also those of the session in which its link was made."""

    dependencies = [("jobs", "0028_password_issuers")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="password_issuers",
            field=models.ManyToManyField(
                help_text="the issuers of the session in which the password was set, who may know it",
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="loginlink",
            name="issuers",
            field=models.JSONField(
                default=list,
                help_text="ids of the issuer and of the issuers of their session, without its user",
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="login_issuers",
            field=models.JSONField(
                default=list, help_text="ids of the issuers of the session that created the token"
            ),
        ),
        migrations.AddField(
            model_name="promotionrequest",
            name="requested_by_issuers",
            field=models.ManyToManyField(
                help_text="the issuers of the session that opened it",
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
